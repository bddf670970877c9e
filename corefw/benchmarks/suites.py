"""The suites of rows by name, and those that a user's file holds."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path

from corefw.benchmarks.larger import LARGER
from corefw.benchmarks.ops import OPS
from corefw.benchmarks.overhead import OVERHEAD
from corefw.benchmarks.training import TRAINING

Row = Callable  # given a module with PyTorch's API, returns the call to time

SUITES: dict[str, dict[str, Row]] = {"ops": OPS, "training": TRAINING, "larger": LARGER, "overhead": OVERHEAD}
_PREFIX = "bench_"  # of a file's functions


def _of_size(function: Callable, size: object) -> Row:
    return lambda torch: function(torch, size)


def of_file(path: Path) -> dict[str, Row]:
    """The rows of a file: its functions ``bench_<op>(torch)``, or ``bench_<op>(torch, size)`` with ``.sizes``."""
    found: dict[str, Row] = {}
    for name, function in runpy.run_path(str(path), run_name=path.stem).items():
        if name.startswith(_PREFIX) and callable(function):
            op = name.removeprefix(_PREFIX)
            sizes = getattr(function, "sizes", None)
            if sizes is None:
                found[op] = function
            else:
                found |= {f"{op}-{_label(size)}": _of_size(function, size) for size in sizes}
    return found


def _label(size: object) -> str:
    return "x".join(map(str, size)) if isinstance(size, tuple | list) else str(size)


def op_of(row: str) -> str:
    """The op of a row, without its size."""
    return row.partition("-")[0]
