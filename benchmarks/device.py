"""Measures ops and training steps on a GPU, corefw beside PyTorch where that is installed.

python -m benchmarks.device RESULTS.json [--device cuda] [--seconds 240] [--large ELEMENTS] [--select WORDS] [--once]

The cases are those of the CPU's benchmarks. A call only queues work, so a time is that of many calls and one wait,
divided by their number; the columns take turns, and the least of their times counts. Rows that read and write memory
have their rate beside that of a copy in the same run, products theirs in FLOP/s. With --once, each row is called once,
on few samples: it shows that all rows run, on a device whose times say nothing.
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
from typing import Any

from corefw.benchmarks.ops import POSITIONS, positions, shaped, vectors
from corefw.benchmarks.shaped import SHAPED
from corefw.benchmarks.training import ON_IMAGES, TRAINING
from corefw.benchmarks.vectors import VECTORS
from corefw.dispatch.measured import time_of

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
MEDIUM = 10**6  # elements of every vector's row
LARGE = 1 << 26  # elements: beyond the caches of a GPU
FEW = 2  # samples, where each row is called once


def columns(device: str) -> tuple[dict[str, Any], dict[str, Callable]]:
    """The modules that are compared, and what waits for the device of each."""
    if device == "emulated":
        importlib.import_module("tests.emulation.device").install()
    corefw = importlib.import_module("corefw")
    registry = importlib.import_module("corefw.dispatch.registry").registry
    modules = {"corefw": corefw}
    waits = {"corefw": registry.runtime(device).synchronize}
    if device == "cuda" and importlib.util.find_spec("torch"):
        torch = importlib.import_module("torch")
        if torch.cuda.is_available():
            modules["torch"], waits["torch"] = torch, torch.cuda.synchronize
    for module in modules.values():
        module.set_default_device(device)
        module.manual_seed(0)
    return modules, waits


def measure(calls: dict[str, Callable], waits: dict[str, Callable], once: bool = False) -> dict[str, float]:
    """The least time of each column; they take turns. With `once`, the time of a first call."""
    if once:
        return {column: time_of(waits[column], call, 1) for column, call in calls.items()}
    counts = {}
    for column, call in calls.items():
        time_of(waits[column], call, 2)  # compiles, and fills caches
        counts[column] = max(3, min(500, int(0.02 / time_of(waits[column], call, 3))))
    best = dict.fromkeys(calls, math.inf)
    for _ in range(REPEATS):
        for column, call in calls.items():
            best[column] = min(best[column], time_of(waits[column], call, counts[column]))
    return best


def few_samples(shapes: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    """The shapes of a row, where a first dimension of more than two is that of the samples, with few of them."""
    samples = shapes[0][0]
    return tuple((FEW, *shape[1:]) if len(shape) > 2 and shape[0] == samples else shape for shape in shapes)


def rows(modules: dict, large: int, once: bool = False) -> Iterator[tuple[str, Callable[[], dict[str, Callable]]]]:
    """(name, what makes {column: call}) of every row."""
    images = {name: partial(program, samples=FEW) for name, program in ON_IMAGES.items()} if once else {}
    chosen = {f"step {name}": program for name, program in (TRAINING | images).items()}
    for name, (operate, shapes) in SHAPED.items():
        chosen[name] = shaped(operate, few_samples(shapes) if once else shapes)
    for op, (operate, _) in VECTORS.items():
        for count in (MEDIUM, large) if op in TRAFFIC else (MEDIUM,):
            chosen[f"{op}-{count}"] = vectors(operate, count)
    chosen |= {name: positions(operate) for name, operate in POSITIONS.items()}
    for name, make in chosen.items():
        yield name, partial(_calls, modules, make)


def _calls(modules: dict, make: Callable) -> dict[str, Callable]:
    return {column: make(torch) for column, torch in modules.items()}


def traffic_of(name: str) -> int | None:
    """Bytes that a row moves."""
    op, _, size = name.rpartition("-")
    return TRAFFIC[op] * int(size) if op in TRAFFIC and size.isdigit() else SHAPED_TRAFFIC.get(name)


class Results:
    """What was measured so far, written after each row."""

    def __init__(self, path: Path, about: dict, large: int):
        self.path, self.about, self.large = path, about, large
        self.seconds: dict[str, dict[str, float]] = {}
        self.failed: dict[str, str] = {}
        self.left_out: list[str] = []

    def write(self) -> None:
        """Replace the file."""
        copied = self.seconds.get(f"clone-{self.large}", {}).get("corefw")
        record = self.about | {
            "large": self.large,
            "copy_bytes_per_second": copied and 8 * self.large / copied,
            "seconds": self.seconds,
            "bytes": {name: size for name in self.seconds if (size := traffic_of(name))},
            "failed": self.failed,
            "left_out": self.left_out,
        }
        temporary = self.path.with_suffix(".new")
        temporary.write_text(json.dumps(record, indent=1) + "\n")
        temporary.replace(self.path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=240, help="no further row is begun after this time")
    parser.add_argument("--large", type=int, default=LARGE, help="elements of the large rows")
    parser.add_argument("--select", help="only rows whose name holds one of these words")
    parser.add_argument("--once", action="store_true", help="call each row once, on few samples: the times say nothing")
    options = parser.parse_args()
    (modules, waits), begun = columns(options.device), time.monotonic()
    about = {
        "date": time.strftime("%Y-%m-%d"),
        "device": modules["corefw"].cuda.get_device_name() if options.device == "cuda" else options.device,
        "once": options.once,
        "python": platform.python_version(),
        "versions": {column: module.__version__ for column, module in modules.items()},
    }
    results = Results(options.results, about, options.large)
    words = options.select.replace(" or ", " ").split() if options.select else [""]
    for name, make in rows(modules, options.large, options.once):
        if not any(word in name for word in words):
            continue
        if time.monotonic() - begun > options.seconds:
            results.left_out.append(name)
            continue
        try:
            results.seconds[name] = measure(make(), waits, options.once)
        except Exception as error:  # a row that fails must not hide the others
            results.failed[name] = f"{type(error).__name__}: {error}"
        results.write()
    results.write()


if __name__ == "__main__":
    main()
