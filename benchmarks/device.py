"""Measures ops and training steps on a GPU, corefw beside PyTorch where that is installed.

python -m benchmarks.device RESULTS.json [--seconds 240]

The cases are those of the CPU's benchmarks. A call only queues work, so a time is that of many calls and one wait,
divided by their number; the columns take turns, and the least of their times counts. Rows that read and write memory
have their rate beside that of a copy in the same run, products theirs in FLOP/s.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import math
import platform
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from benchmarks import test_ops
from benchmarks.programs import PROGRAMS

DEVICE = "cuda"
REPEATS = 5
#: bytes that a row reads and writes per element, float32 throughout
TRAFFIC = {
    **dict.fromkeys(("add", "mul", "div", "maximum", "atan2"), 12),
    **dict.fromkeys(("mul_number", "clamp", "exp", "tanh", "sigmoid", "relu", "gelu", "clone", "neg", "sqrt"), 8),
    **dict.fromkeys(("log", "erf", "sin", "silu", "softplus", "leaky_relu"), 8),
    **dict.fromkeys(("sum", "mean", "amax", "norm"), 4),
}
SHAPED_TRAFFIC = {
    "softmax-512x1024": 8 * 512 * 1024,
    "log_softmax-512x1024": 8 * 512 * 1024,
    "layer_norm-512x1024": 8 * 512 * 1024,
    "transpose_copy-2048": 8 * 2048 * 2048,
    "sum_dim0-1000x1000": 4 * 10**6,
    "sum_dim1-1000x1000": 4 * 10**6,
}
LARGE = 1 << 26  # elements: beyond the caches of a GPU


def columns() -> dict[str, object]:
    """The modules that are compared."""
    names = {"corefw": "corefw"} | ({"torch": "torch"} if importlib.util.find_spec("torch") else {})
    found = {column: importlib.import_module(name) for column, name in names.items()}
    if "torch" in found and not found["torch"].cuda.is_available():  # type: ignore[attr-defined]
        del found["torch"]
    for module in found.values():
        module.set_default_device(DEVICE)  # type: ignore[attr-defined]
        module.manual_seed(0)  # type: ignore[attr-defined]
    return found


def time_of(torch, call: Callable, calls: int) -> float:
    """Seconds per call, of many and one wait."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        call()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / calls


def measure(calls: dict[str, tuple[object, Callable]]) -> dict[str, float]:
    """The least time of each column; they take turns."""
    counts = {}
    for column, (torch, call) in calls.items():
        time_of(torch, call, 2)  # compiles, and fills caches
        counts[column] = max(3, min(500, int(0.02 / time_of(torch, call, 3))))
    best = dict.fromkeys(calls, math.inf)
    for _ in range(REPEATS):
        for column, (torch, call) in calls.items():
            best[column] = min(best[column], time_of(torch, call, counts[column]))
    return best


def row(modules: dict, operate: Callable, make: Callable) -> dict[str, tuple[object, Callable]]:
    """A row of a function of (module, *inputs), whose inputs each column makes with `make(module)`."""
    return {column: (torch, partial(operate, torch, *make(torch))) for column, torch in modules.items()}


def rows(modules: dict) -> Iterator[tuple[str, dict]]:
    """(name, {column: (module, call)}) of every row."""

    def shaped(torch, shapes):
        return [torch.randn(*shape) for shape in shapes]

    def vectors(torch, count):
        return torch.randn(count), torch.randn(count), torch.rand(count) < 0.5

    def positions(torch):
        return torch.randn(10000, 256), torch.randint(0, 10000, (8192,))

    for name, program in PROGRAMS.items():
        yield f"step {name}", {column: (torch, program(torch)) for column, torch in modules.items()}
    for name, (operate, shapes) in test_ops.SHAPED.items():
        yield name, row(modules, operate, partial(shaped, shapes=shapes))
    for name, (operate, size) in (test_ops.ELEMENTWISE | test_ops.REDUCTIONS).items():
        op = name.rpartition("-")[0]
        if size == 10**6:
            for count in (size, LARGE) if op in TRAFFIC else (size,):
                yield f"{op}-{count}", row(modules, operate, partial(vectors, count=count))
    for name, operate in test_ops.POSITIONS.items():
        yield name, row(modules, operate, positions)


def traffic_of(name: str) -> int | None:
    """Bytes that a row moves."""
    op, _, size = name.rpartition("-")
    return TRAFFIC[op] * int(size) if op in TRAFFIC and size.isdigit() else SHAPED_TRAFFIC.get(name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--seconds", type=float, default=240, help="no further row is begun after this time")
    options = parser.parse_args()
    modules, begun = columns(), time.monotonic()
    corefw = modules["corefw"]
    measured: dict[str, dict[str, float]] = {}
    failed: dict[str, str] = {}
    left_out = []
    for name, calls in rows(modules):
        if time.monotonic() - begun > options.seconds:
            left_out.append(name)
            continue
        try:
            measured[name] = measure(calls)
        except Exception as error:  # a row that fails must not hide the others
            failed[name] = f"{type(error).__name__}: {error}"
        del calls
    copied = measured.get(f"clone-{LARGE}", {}).get("corefw")
    results = {
        "date": time.strftime("%Y-%m-%d"),
        "device": corefw.cuda.get_device_name(),  # type: ignore[attr-defined]
        "python": platform.python_version(),
        "versions": {column: module.__version__ for column, module in modules.items()},  # type: ignore[attr-defined]
        "copy_bytes_per_second": copied and 8 * LARGE / copied,
        "seconds": measured,
        "bytes": {name: size for name in measured if (size := traffic_of(name))},
        "failed": failed,
        "left_out": left_out,
    }
    temporary = options.results.with_suffix(".new")
    temporary.write_text(json.dumps(results, indent=1) + "\n")
    temporary.replace(options.results)


if __name__ == "__main__":
    main()
