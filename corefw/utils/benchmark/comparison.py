"""A table of measurements: a part for each label, a row for each sub-label, a column for each description."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum

from corefw.utils.benchmark.measurement import (
    NOISY,
    Measurement,
    ordered_unique,
    select_unit,
    trim_sigfig,
    unit_to_english,
)

_BEST, _GOOD, _BAD, _WORST, _RESET = (
    "\033[92m\033[1m",
    "\033[34m\033[1m",
    "\033[2m\033[91m",
    "\033[91m\033[1m",
    "\033[0m\033[0m",
)


class Colorize(Enum):
    """What a time's colour compares it with."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """Measurements as a table.

    Args:
        results: the measurements; those of one task are put together.

    >>> from corefw.utils.benchmark import Compare, Measurement, TaskSpec
    >>> task = TaskSpec("x + y", "pass", label="sum", sub_label="small", description="ours")
    >>> print(Compare([Measurement(10, [2e-5, 2e-5], task)]))
    [------ sum -------]
                 |  ours
    1 threads: ---------
          small  |   2
    <BLANKLINE>
    Times are in microseconds (us).
    <BLANKLINE>
    """

    def __init__(self, results: list[Measurement]):
        self._results: list[Measurement] = []
        self._trim, self._colors, self._warn = False, Colorize.NONE, False
        self.extend_results(results)

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add measurements.

        Raises:
            ValueError: something else is given.
        """
        for result in (results := [*results]):
            if not isinstance(result, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(result)} instead.")
        self._results += results

    def trim_significant_figures(self) -> None:
        """Show only digits that mean something."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colour the times: the best of a column, or of a row, green, those that are much worse red."""
        self._colors = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Say beside a time by how much its measurements differ, if it is much."""
        self._warn = True

    def print(self) -> None:
        """Print the table."""
        print(self)

    def __str__(self) -> str:
        merged = Measurement.merge(self._results)
        labels = ordered_unique(result.task_spec.label or result.task_spec.stmt for result in merged)
        parts = [
            self._part(label, [r for r in merged if (r.task_spec.label or r.task_spec.stmt) == label])
            for label in labels
        ]
        return "\n".join(parts)

    def _part(self, label: str, results: Sequence[Measurement]) -> str:
        unit, scale = select_unit(min(result.median for result in results))
        columns = ordered_unique(result.task_spec.description or "" for result in results)
        rows = ordered_unique(
            (result.task_spec.num_threads, result.task_spec.env, result.as_row_name)
            for result in sorted(results, key=lambda result: result.task_spec.num_threads)
        )
        names = [f"      {f'({env}) ' if env else ''}{name}" for _, env, name in rows]
        cells = [
            [
                next(
                    (
                        r
                        for r in results
                        if (r.task_spec.num_threads, r.task_spec.env, r.as_row_name) == row
                        and (r.task_spec.description or "") == column
                    ),
                    None,
                )
                for column in columns
            ]
            for row in rows
        ]
        texts = [[self._text(cell, scale) for cell in row] for row in cells]
        widths = [max(len(title), *(len(row[i]) for row in texts)) for i, title in enumerate(columns)]
        first = max(map(len, names))
        whole = first + sum(width + 5 for width in widths)

        def line(name: str, row: Iterable[str]) -> str:
            return "  |  ".join([f"{name:<{first}}", *row])

        lines = [f"[{f' {label} '.center(whole - 2, '-')}]"]
        lines.append(line("", (f"{title:^{width}}" for title, width in zip(columns, widths))))
        for i, (name, row) in enumerate(zip(names, texts)):
            if i == 0 or rows[i - 1][0] != rows[i][0]:
                lines.append(f"{rows[i][0]} threads: ".ljust(whole, "-"))
            cell = (self._colored(cells, i, j, f"{text:^{width}}") for j, (text, width) in enumerate(zip(row, widths)))
            lines.append(line(name, cell))
        lines += ["", f"Times are in {unit_to_english(unit)}s ({unit})."]
        if self._warn and any(cell is not None and cell.has_warnings for row in cells for cell in row):
            lines.append("(! XX%) Measurement has high variance, where XX is the IQR / median * 100.")
        return "\n".join([*lines, ""])

    def _text(self, cell: Measurement | None, scale: float) -> str:
        if cell is None:
            return ""
        time = cell.median / scale
        text = f"{trim_sigfig(time, cell.significant_figures):.10g}" if self._trim else f"{time:.4g}"
        if self._warn and cell.has_warnings:
            text += f" (! {100 * cell.iqr / cell.median:.0f}%)"
        return text

    def _colored(self, cells: list[list[Measurement | None]], i: int, j: int, text: str) -> str:
        """The text of a cell in the colour of its time."""
        cell = cells[i][j]
        if cell is None or self._colors is Colorize.NONE:
            return text
        others = cells[i] if self._colors is Colorize.ROWWISE else [row[j] for row in cells]
        ratio = cell.median / min(other.median for other in others if other is not None)
        color = _BEST if ratio <= 1 + NOISY else _GOOD if ratio <= 1.25 else _BAD if ratio > 2 else ""
        color = _WORST if ratio > 5 else color
        return f"{color}{text}{_RESET}" if color else text
