"""A comparison: rows measured in columns side by side, kept as what JSON can hold, and the figures that follow."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from corefw.benchmarks.columns import PEER, Column
from corefw.benchmarks.machine import about, limits
from corefw.benchmarks.suites import Row
from corefw.benchmarks.timing import described, take_turns
from corefw.benchmarks.work import Work

VERSION = 1  # of the files


def measure_row(columns: Mapping[str, Column], make: Row, seconds: float) -> dict[str, Any]:
    """One row: the seconds of each column, what it failed with, who ran, and what it had to do."""
    calls: dict[str, Callable] = {}
    row: dict[str, Any] = {"seconds": {}, "ran": {}, "failed": {}}
    works = []
    for name, column in columns.items():
        try:
            with column:
                column.module.manual_seed(0)
                calls[name] = make(column.module)
                if name == PEER:
                    calls[name]()
                else:
                    with Work() as work:
                        calls[name]()
                    works.append(work)
                    row["ran"][name] = work.ran()
                column.synchronize()
        except Exception as error:  # what one column cannot do must not hide what others can
            calls.pop(name, None)
            row["failed"][name] = described(error)
    row["seconds"] = take_turns(columns, calls, seconds, row["failed"])
    # A backend with fused kernels moves less: the least is what the row needs.
    row["bytes"] = min((work.bytes for work in works), default=0)
    row["flops"] = min((work.flops for work in works), default=0)
    return row


def compare(
    suite: str, rows: Mapping[str, Row], columns: Mapping[str, Column], seconds: float, threads: int, dtype: str,
    report: Callable[[str, dict], None],
) -> dict[str, Any]:  # fmt: skip
    """Measure `rows` for about so many seconds in all, telling `report` of each; returns the comparison."""
    for column in columns.values():
        column.set_num_threads(threads)
    end, share = time.monotonic() + seconds, seconds / (len(rows) + 2)
    comparison: dict[str, Any] = {
        "version": VERSION,
        "suite": suite,
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "machine": about(),
        "device": next(iter(columns.values())).device,
        "dtype": dtype,
        "threads": threads,
        "columns": {name: column.version for name, column in columns.items()},
        "limits": limits(columns, share),
        "rows": {},
    }
    for done, (name, make) in enumerate(rows.items()):
        share = max(0.0, end - time.monotonic()) / (len(rows) - done)  # a row that takes long leaves others less
        comparison["rows"][name] = measure_row(columns, make, share)
        report(name, comparison)
    return comparison


def load(path: Path) -> dict[str, Any]:
    """An earlier comparison; ValueError if the file is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is no comparison: {error}") from error
    if not isinstance(found, dict) or found.get("version") != VERSION or "rows" not in found:
        raise ValueError(f"{path} is no comparison that this corefw has written")
    return found


# -- figures ----------------------------------------------------------------------------------------------------------
def baseline(comparison: dict) -> str | None:
    """The column that the others are compared with: the last one, None where it is the only one."""
    names = list(comparison["columns"])
    return names[-1] if len(names) > 1 else None


def least(row: dict, column: str) -> float | None:
    """The least of a column's seconds, which a busy neighbour disturbs least."""
    return row["seconds"][column][0] if column in row["seconds"] else None


def speed(row: dict, column: str, than: str) -> float | None:
    """How many times faster one column is than another."""
    ours, theirs = least(row, column), least(row, than)
    return theirs / ours if ours and theirs else None


def change(comparison: dict, earlier: dict, name: str, column: str) -> float | None:
    """How many times faster a column has become since an earlier comparison."""
    old = earlier["rows"].get(name)
    now, before = least(comparison["rows"][name], column), least(old, column) if old else None
    return before / now if now and before else None


def rates(comparison: dict, row: dict, column: str) -> Iterator[tuple[float, float, str]]:
    """(units of 10^9 per second, share of the machine's limit, unit) of a column, where it is any."""
    seconds = least(row, column)
    for quantity, unit in (("flops", "GFLOP/s"), ("bytes", "GB/s")):
        rate = row[quantity] / seconds if seconds else 0
        limit = comparison["limits"][quantity]
        share = rate / limit if limit else 0
        if share > 0.005:
            yield rate / 1e9, share, unit


def helped(row: dict, column: str) -> list[str]:
    """Others than the column's backend that ran some of its kernels."""
    return [who for who in row["ran"].get(column, ()) if who != column]


def mean(values: list[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


def summary(comparison: dict) -> list[str]:
    """A sentence for each column: the mean of its factors, and the rows in which it is slower."""
    than, lines = baseline(comparison), []
    for column in comparison["columns"]:
        if than is None or column == than:
            continue
        factors = {name: f for name, row in comparison["rows"].items() if (f := speed(row, column, than))}
        if factors:
            slower = sorted((f, name) for name, f in factors.items() if f < 1 / 1.1)
            said = ", ".join(f"{name} ({f:.2f})" for f, name in slower[:8]) + (", ..." if len(slower) > 8 else "")
            lines.append(
                f"{column}: {mean([*factors.values()]):.2f} times the speed of {than} (geometric mean of "
                f"{len(factors)}); slower in {said or 'none'}"
            )
    return lines
