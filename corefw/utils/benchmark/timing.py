"""Running a statement often enough to tell how long it takes."""

from __future__ import annotations

import sys
import textwrap
import timeit
from collections.abc import Callable
from enum import Enum
from typing import Any, NoReturn

from corefw.dispatch.registry import registry
from corefw.utils.benchmark.measurement import Measurement, TaskSpec, set_torch_threads


class Language(Enum):
    """What statements are written in; only Python is measured."""

    PYTHON = 0
    CPP = 1


def timer() -> float:
    """Seconds since some point in the past, once all devices have done what they were given."""
    for _, runtime in [*registry.runtimes.values()]:
        runtime.synchronize()
    return timeit.default_timer()


class Timer:
    """Measures how long a statement takes.

    Args:
        stmt: Python source.
        setup: what runs once before each time.
        global_setup: "", as there is no C++ to which it would belong.
        timer: gives seconds; the default waits for the devices.
        globals: the names that the statement knows, beside `torch`.
        label, sub_label, description, env: see `TaskSpec`.
        num_threads: the threads of kernels while it is measured.
        language: "py" or "python".

    Raises:
        NotImplementedError: another language.

    >>> import corefw as torch
    >>> from corefw.utils.benchmark import Timer
    >>> found = Timer("x + 1", globals={"x": torch.ones(3)}).timeit(10)
    >>> len(found.times), found.number_per_run
    (1, 10)
    """

    def __init__(
        self, stmt: str = "pass", setup: str = "pass", global_setup: str = "", timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None, label: str | None = None, sub_label: str | None = None,
        description: str | None = None, env: str | None = None, num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ):  # fmt: skip
        if language not in (Language.PYTHON, "py", "python"):
            raise NotImplementedError(f"benchmark.Timer: language={language!r}: only Python statements are measured")
        if global_setup:
            raise ValueError("benchmark.Timer: global_setup is C++ source, of statements in C++; use setup")
        if not isinstance(stmt, str):
            raise ValueError("benchmark.Timer: stmt is Python source, not a function: pass the function in globals")
        stmt, setup = textwrap.dedent(stmt).strip(), textwrap.dedent(setup).strip()
        names = {"torch": sys.modules["corefw"], **(globals or {})}
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)
        self._timer = timeit.Timer(stmt, setup, timer, names)

    def _seconds(self, number: int) -> float:
        with set_torch_threads(self._task_spec.num_threads):
            return max(self._timer.timeit(number), 1e-9)

    def _measured(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number, times, self._task_spec)

    def timeit(self, number: int = 1000000) -> Measurement:
        """Run the statement `number` times, after some to warm up, for one time."""
        self._seconds(max(number // 100, 2))
        return self._measured(number, [self._seconds(number)])

    def blocked_autorange(
        self, callback: Callable[[int, float], NoReturn] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Times of blocks of runs, each long enough that the clock does not matter, for `min_run_time` seconds.

        Args:
            callback: called with the number of runs and the seconds of each block.
            min_run_time: seconds that all blocks take together at least.
        """
        number = self._block(min_run_time)
        times: list[float] = []
        while sum(times) < min_run_time:
            times.append(self._seconds(number))
            if callback is not None:
                callback(number, times[-1])
        return self._measured(number, times)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], NoReturn] | None = None,
    ) -> Measurement:
        """Times of blocks of runs until their interquartile range is less than `threshold` of the median.

        Args:
            threshold: of the median.
            min_run_time: seconds between looks at the times.
            max_run_time: seconds after which it ends anyway.
            callback: called with the number of runs and the seconds of each block.
        """
        number = self._block(0.05)
        times: list[float] = []
        while sum(times) < max_run_time:
            since = len(times)
            while len(times) < since + 1 or sum(times[since:]) < min_run_time:
                times.append(self._seconds(number))
                if callback is not None:
                    callback(number, times[-1])
            if len(times) >= 4 and self._measured(number, times).meets_confidence(threshold):
                break
        return self._measured(number, times)

    def _block(self, min_run_time: float) -> int:
        """How many runs make a block: the clock is read in less than a thousandth of it, or it is a thousandth of all
        the time."""
        overhead = sorted(timeit.Timer("pass", "pass", self._timer.timer).timeit(0) for _ in range(5))[2]  # type: ignore[attr-defined]
        number = 1
        while True:
            taken = self._seconds(number)
            if (overhead / taken <= 1e-4 and taken >= min_run_time / 1000) or taken > min_run_time:
                return number
            number *= 10

    def repeat(self, repeat: int = -1, number: int = -1) -> NoReturn:
        """Refused, as in PyTorch: `blocked_autorange` repeats."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Any = None) -> NoReturn:
        """Refused, as in PyTorch: see `blocked_autorange`."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def collect_callgrind(self, number: int = 100, **options: Any) -> NoReturn:
        """Refused: instructions are not counted."""
        raise NotImplementedError(
            "Timer.collect_callgrind: instructions are not counted here; run the program under "
            "`valgrind --tool=callgrind`"
        )
