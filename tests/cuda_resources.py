"""What CUDA functions take of a multiprocessor, as the assembler reports it: registers, spills, shared memory.

python -m tests.cuda_resources [--all] [softmax.cu ...] prints a row for each function of these files, or of all, and
each thing that a macro may stand for, for both architectures of `tests.nvrtc`; with --all for every combination.
Elementwise functions, which are many and made alike, have one row each without --all.
"""

import os
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

from cupy_backends.cuda.libs import nvrtc as library

from corefw_cupy.compilation import OPTIONS
from corefw_cupy.launch import Function, text
from tests import nvrtc

ENTRY = re.compile(r"Compiling entry function '(\w+)'(.*?)(?=Compiling entry function|\Z)", re.DOTALL)
FIGURES = {  # of an entry function, by the words before or after them in the assembler's report
    "registers": re.compile(r"Used (\d+) registers"),
    "stored": re.compile(r"(\d+) bytes spill stores"),
    "loaded": re.compile(r"(\d+) bytes spill loads"),
    "shared": re.compile(r"(\d+) bytes smem"),
}


class Resources(NamedTuple):
    """Registers of a thread; bytes that it spills, stored and loaded; bytes of shared memory of a block, without what
    a launch adds."""

    registers: int
    stored: int
    loaded: int
    shared: int


def resources(source: str, architecture: str) -> dict[str, Resources]:
    """By name, what the functions of a source take."""
    program = library.createProgram(source, "source.cu", (), ())
    try:
        library.compileProgram(program, [*OPTIONS, f"-arch={architecture}", "--ptxas-options=-v"])
        report = library.getProgramLog(program)
    finally:
        library.destroyProgram(program)
    found = {}
    for name, figures in ENTRY.findall(report):
        matches = {figure: pattern.search(figures) for figure, pattern in FIGURES.items()}
        found[name] = Resources(**{figure: int(match[1]) if match else 0 for figure, match in matches.items()})
    return found


def sample(function: Function) -> list[dict[str, str]]:
    """As `nvrtc.sample`, but one variant of a function that was made from a formula."""
    return nvrtc.sample(function)[: 1 if "__global__" in function.source else None]


def table(
    chosen: list[Function], variants=sample, architectures=nvrtc.ARCHITECTURES
) -> Iterator[tuple[str, str, str, str, Resources]]:
    """The file, the name, the definitions, the architecture and the resources of functions."""
    units = [
        (file.split('"')[1] if file else "formulas", definitions, text(source, dict(definitions)), architecture)
        for (file, definitions), (source, _) in nvrtc.units(chosen, variants).items()
        for architecture in architectures
    ]
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        reports = pool.map(resources, *zip(*[unit[2:] for unit in units]))
        for (file, definitions, _, architecture), report in zip(units, reports, strict=True):
            variant = " ".join(f"{macro}={value}" for macro, value in definitions)
            yield from ((file, name, variant, architecture, taken) for name, taken in report.items())


if __name__ == "__main__":
    print("file", "function", "variant", "architecture", *Resources._fields, sep="\t")
    chosen, variants = nvrtc.selected(sys.argv[1:])
    for *row, taken in table(chosen, variants if "--all" in sys.argv else sample):
        print(*row, *taken, sep="\t", flush=True)
