"""`corefw bench`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path

import corefw
from corefw.benchmarks.chart import draw
from corefw.benchmarks.columns import column, names
from corefw.benchmarks.comparison import compare, load
from corefw.benchmarks.page import page
from corefw.benchmarks.suites import SUITES, Row, of_file
from corefw.benchmarks.table import cells, header, line, notes, widths
from corefw.commands import parsing
from corefw.errors import did_you_mean
from corefw.files import replacing
from corefw.progress import Progress

SECONDS = 0.3  # for a row, by default
PICTURES = (".png", ".svg")


def add(commands: parsing.Commands) -> None:
    """Its parser."""
    command = commands.add(
        "bench",
        bench,
        "measure backends side by side, and beside PyTorch where it is installed",
        "corefw bench ops -k 'softmax matmul' --seconds 20",
        "corefw bench training --chart training.svg --html training.html",
        "corefw bench my_ops.py --json new.json --compare old.json",
    )
    command.add_argument("suite", nargs="?", default="ops", help=f"{', '.join(SUITES)} or a file (default: ops)")
    command.add_argument("--backends", help="the columns, such as acme,torch; others are compared with the last one")
    command.add_argument("--device", default="cpu", help="where to measure (default: cpu)")
    command.add_argument("--dtype", default="float32", help="of the tensors (default: float32)")
    command.add_argument("--threads", type=parsing.count(1), default=corefw.get_num_threads(), help="that may be used")
    command.add_argument("--seconds", type=float, help=f"for all rows together (default: {SECONDS} for each)")
    command.add_argument("-k", dest="words", help="only rows whose names hold one of these words")
    command.add_argument("--json", type=Path, help="write the figures, after each row")
    command.add_argument("--compare", type=Path, help="beside the figures of an earlier --json")
    command.add_argument("--chart", type=Path, help="draw bars: a name that ends with .png or .svg")
    command.add_argument("--html", type=Path, help="write a report: one page that needs no other file")


def bench(arguments: argparse.Namespace) -> int:
    """Measure backends side by side."""
    dtype = parsing.dtype(arguments.dtype)
    if not dtype.is_floating_point:
        raise parsing.UsageError(f"expected a floating dtype, got '{dtype.name}'")
    if arguments.chart and arguments.chart.suffix not in PICTURES:
        raise parsing.UsageError(f"a chart ends with {' or '.join(PICTURES)}, got '{arguments.chart}'")
    if arguments.chart and find_spec("matplotlib") is None:
        raise ImportError("charts are drawn with matplotlib: pip install matplotlib")
    rows = _rows(arguments.suite, arguments.words)
    earlier = _earlier(arguments.compare) if arguments.compare else None
    chosen = arguments.backends.split(",") if arguments.backends else names(arguments.device)
    columns = {name: column(name, arguments.device, dtype.name) for name in chosen}
    if not columns:
        raise parsing.UsageError(f"no installed backend serves '{arguments.device}'; see corefw backends")
    seconds = SECONDS * len(rows) if arguments.seconds is None else arguments.seconds
    wide: list[int] = []

    def report(name: str, comparison: dict) -> None:
        if not wide:
            wide.extend(widths(comparison, list(rows), earlier))
            progress.print(line(["op", *header(comparison, earlier)[1:]], wide))
        progress.print(line(cells(comparison, name, earlier), wide))
        progress.advance()
        if arguments.json:  # whatever ends the run, these rows are there
            _write(arguments.json, _figures(comparison))

    suite = Path(arguments.suite).stem
    with _limited(arguments.threads), Progress(f"bench {suite}", len(rows), "rows") as progress:
        comparison = compare(suite, rows, columns, seconds, arguments.threads, dtype.name, report)
    print("", *notes(comparison), sep="\n")
    _write_all(arguments, comparison, earlier)
    return 0 if all(row["seconds"] for row in comparison["rows"].values()) else 1


def _rows(suite: str, words: str | None) -> Mapping[str, Row]:
    """The rows of a suite or a file whose names hold one of the words."""
    if suite in SUITES:
        rows = SUITES[suite]
    elif suite.endswith(".py"):
        rows = of_file(Path(suite))
    else:
        raise parsing.UsageError(f"no suite is called '{suite}'{did_you_mean(suite, SUITES)}; or name a file, PATH.py")
    wanted = words.split() if words else [""]
    found = {name: make for name, make in rows.items() if any(word in name for word in wanted)}
    if not found:
        reason = f"no row whose name holds {words}" if rows else "no functions bench_<op>(torch)"
        raise parsing.UsageError(f"'{suite}' has {reason}")
    return found


def _earlier(path: Path) -> dict:
    """The comparison that an earlier run has written."""
    try:
        return load(path)
    except ValueError as error:
        raise parsing.UsageError(str(error)) from error


def _limited(threads: int):
    """A with-block in which also the libraries of NumPy use so many threads, where threadpoolctl can tell them."""
    if find_spec("threadpoolctl") is None:
        return nullcontext()
    import threadpoolctl

    return threadpoolctl.threadpool_limits(threads)


def _figures(comparison: dict) -> bytes:
    return (json.dumps(comparison, indent=1) + "\n").encode()


def _write(path: Path, content: bytes) -> None:
    with replacing(path) as file:
        file.write(content)


def _write_all(arguments: argparse.Namespace, comparison: dict, earlier: dict | None) -> None:
    """Write the files that are asked for."""
    files: dict[Path, bytes] = {}
    if arguments.json:
        files[arguments.json] = _figures(comparison)
    if arguments.chart:
        files[arguments.chart] = draw(comparison, arguments.chart.suffix[1:])
    if arguments.html:
        files[arguments.html] = page(comparison, earlier).encode()
    for path, content in files.items():
        _write(path, content)
        print(f"wrote {path}")
