"""A measurement: the times of a statement, with what they are worth, and what was measured."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from corefw.settings import get_num_threads, set_num_threads

_T = TypeVar("_T")
UNITS = {"s": ("second", 1.0), "ms": ("millisecond", 1e-3), "us": ("microsecond", 1e-6), "ns": ("nanosecond", 1e-9)}
#: of the median, from which on the interquartile range is warned of, and more strongly
NOISY, VERY_NOISY = 0.1, 0.25
RESOLUTION = 25e-9  # seconds: no measurement is believed to be closer


@dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """What was measured.

    Args:
        stmt, setup, global_setup: the statement, and what ran once before.
        label: what is compared in a table; the statement if missing.
        sub_label: what tells measurements of one label apart: a row.
        description: what tells measurements of a row apart: a column.
        env: where it ran, if several environments are compared.
        num_threads: the threads of kernels.
    """

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label and what it measures, as far as they are said."""
        return (self.label or self.stmt) + (f": {self.sub_label}" if self.sub_label else "")

    def setup_str(self) -> str:
        """What ran before, "" if nothing did."""
        if self.setup == "pass" or not self.setup:
            return ""
        return f"setup:\n{_indented(self.setup)}" if "\n" in self.setup else f"setup: {self.setup}"

    def summarize(self) -> str:
        """All that is said of it, a line each."""
        lines = [self.title, self.description or "", self.setup_str()]
        return "\n".join(line for line in lines if line)


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


@dataclass(init=True, repr=False)
class Measurement:
    """The times of a statement.

    Args:
        number_per_run: how often the statement ran for each time.
        raw_times: seconds.
        task_spec: what was measured.
        metadata: whatever else is to be kept.

    >>> found = Measurement(10, [1e-5, 1.2e-5, 1.1e-5], TaskSpec("x + 1", "pass"))
    >>> found.median, found.number_per_run
    (1.1e-06, 10)
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = field(default=None)

    def __getattr__(self, name: str) -> Any:
        if (not name.startswith("_") and name in TaskSpec.__dataclass_fields__) or name == "title":
            return getattr(self.task_spec, name)
        raise AttributeError(f"'Measurement' object has no attribute {name!r}")

    @property
    def times(self) -> list[float]:
        """Seconds of one run of the statement."""
        return [time / self.number_per_run for time in self.raw_times]

    def _of(self, statistic: Any, *arguments: Any) -> float:
        if not self.raw_times:
            raise ValueError("The measurement is empty")
        return float(statistic(self.times, *arguments))

    @cached_property
    def mean(self) -> float:
        """The mean time, which outliers draw to themselves."""
        return self._of(np.mean)

    @cached_property
    def median(self) -> float:
        """The median time."""
        return self._of(np.median)

    @cached_property
    def iqr(self) -> float:
        """The interquartile range: what the middle half of the times spans."""
        return self._of(np.quantile, 0.75) - self._of(np.quantile, 0.25)

    @cached_property
    def significant_figures(self) -> int:
        """How many digits of the median mean something, 1 to 4: by the interval of confidence, of 90%, around the
        mean of the middle half of the times."""
        times = sorted(self.times)
        middle = np.array(times[len(times) // 4 : math.ceil(3 * len(times) / 4)])
        interval = max(1.645 * middle.std() / math.sqrt(len(middle)), RESOLUTION)
        return min(max(math.floor(math.log10(max(self.median, RESOLUTION) / interval)), 1), 4)

    @property
    def has_warnings(self) -> bool:
        """Whether the times differ so much that the median says little."""
        return not self.meets_confidence()

    def meets_confidence(self, threshold: float = NOISY) -> bool:
        """Whether the interquartile range is less than `threshold` of the median."""
        return self.iqr / self.median < threshold

    @property
    def as_row_name(self) -> str:
        """What a table calls the row."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """One measurement of all those of each task, their times put together."""
        groups: dict[TaskSpec, list[Measurement]] = {}
        for measurement in measurements:
            groups.setdefault(measurement.task_spec, []).append(measurement)
        return [Measurement(1, [time for each in group for time in each.times], task) for task, group in groups.items()]

    def __repr__(self) -> str:
        unit, scale = select_unit(self.median)
        threads = f"{self.task_spec.num_threads} thread{'s' * (self.task_spec.num_threads > 1)}"
        lines = [object.__repr__(self), self.task_spec.summarize()]
        if len(self.raw_times) == 1:
            lines += [f"  {self.median / scale:.2f} {unit}", f"  1 measurement, {self.number_per_run} runs , {threads}"]
            return "\n".join(lines)
        share = self.iqr / self.median
        low, high = self._of(np.quantile, 0.25) / scale, self._of(np.quantile, 0.75) / scale
        lines.append(f"  Median: {self.median / scale:.2f} {unit}")
        if len(self.raw_times) > 3:
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})")
        lines.append(f"  {len(self.raw_times)} measurements, {self.number_per_run} runs per measurement, {threads}")
        if share >= NOISY:
            lines.append(f"  WARNING: Interquartile range is {share * 100:.1f}% of the median measurement.")
            lines.append(
                "           This suggests that something else kept the machine busy."
                if share >= VERY_NOISY
                else "           Something else may have kept the machine busy."
            )
        return "\n".join(lines)


def select_unit(t: float) -> tuple[str, float]:
    """The unit in which a time is shown, and its seconds.

    >>> select_unit(2.5e-6)
    ('us', 1e-06)
    """
    for unit, (_, scale) in UNITS.items():
        if t >= scale:
            return unit, scale
    return "ns", 1e-9


def unit_to_english(u: str) -> str:
    """The name of a unit.

    >>> unit_to_english("us")
    'microsecond'
    """
    return UNITS[u][0]


def trim_sigfig(x: float, n: int) -> float:
    """A number rounded to `n` significant digits.

    >>> trim_sigfig(1234.5, 2)
    1200.0
    """
    return float(f"{x:.{n - 1}e}") if x else x


def ordered_unique(elements: Iterable[_T]) -> list[_T]:
    """The elements in order, each once.

    >>> ordered_unique([2, 1, 2])
    [2, 1]
    """
    return [*dict.fromkeys(elements)]


@contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """A block in which kernels use `n` threads."""
    before = get_num_threads()
    try:
        set_num_threads(n)
        yield
    finally:
        set_num_threads(before)
