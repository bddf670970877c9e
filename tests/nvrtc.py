"""Compiles the CUDA sources of the CuPy backend with NVRTC, which needs no GPU and no driver.

python -m tests.nvrtc [--all] [softmax.cu ...] compiles the functions of these files, or all, for each thing that a
macro may stand for; with --all for every combination.
"""

import sys
from collections import defaultdict
from collections.abc import Callable

import numpy as np
from cupy_backends.cuda.libs import nvrtc

from corefw_cupy import table
from corefw_cupy.compilation import OPTIONS, compiled
from corefw_cupy.cuda import Cuda
from corefw_cupy.device_asserts import DeviceAsserts
from corefw_cupy.launch import Function, text
from tests.emulation.namespace import namespace

ARCHITECTURES = ("sm_80", "sm_90")
QUICK = (*OPTIONS, "--Ofast-compile=max")  # machine code all the same, in a seventh of the time


def available() -> bool:
    """Whether NVRTC is installed."""
    try:
        nvrtc.getVersion()
    except RuntimeError:
        return False
    return True


def functions() -> list[Function]:
    """All CUDA functions of the backend."""
    made = Cuda(namespace(), DeviceAsserts(np.zeros(4, np.int64), lambda: None, blocking=False))
    table(made)
    return made.functions


def sample(function: Function) -> list[dict[str, str]]:
    """Definitions in which everything that each macro may stand for occurs."""
    values = {macro: list(texts.values()) for macro, texts in function.macros.items()}
    count = max(map(len, values.values()), default=1)
    return [{macro: texts[i % len(texts)] for macro, texts in values.items()} for i in range(count)]


def covering(chosen: list[Function]) -> Callable[[Function], list[dict[str, str]]]:
    """A choice of definitions in which every function occurs, and everything that macros may stand for in the functions
    of one kind: those of one name in a file, or of one class of dtypes and walk."""
    kinds = defaultdict(list)
    for function in chosen:
        generated = "__global__" in function.source
        kinds[tuple(function.name.split("_")[-2:]) if generated else (function.source, function.name)].append(function)
    found: dict[int, list[dict[str, str]]] = {}
    for members in kinds.values():
        samples = [sample(function) for function in members]
        missing = {item for every in samples for one in every for item in one.items()}
        for number, (function, every) in enumerate(zip(members, samples, strict=True)):
            found[id(function)] = [every[number % len(every)]]
            missing -= every[number % len(every)].items()
        for function, every in zip(members, samples, strict=True):
            for one in every:
                if not missing.isdisjoint(one.items()):
                    found[id(function)].append(one)
                    missing -= one.items()
    return lambda function: found[id(function)]


def units(chosen: list[Function], variants) -> dict[tuple, tuple[str, list[Function]]]:
    """What is compiled at once, (source, its functions) by definitions: each file, and all generated sources together.

    Args:
        variants: gives the definitions with which a function is compiled.
    """
    found = defaultdict(list)
    for function in chosen:
        file = function.source if "__global__" not in function.source else ""
        for definitions in variants(function):
            key = tuple(item for item in definitions.items() if item != ("SIZE", "int32"))  # int32 is what is assumed
            found[file, key].append(function)
    return {
        key: ("\n".join(dict.fromkeys(member.source for member in members)), members) for key, members in found.items()
    }


def compile_all(chosen: list[Function], architecture: str, variants=sample, options=OPTIONS) -> int:
    """Compiles functions, and sees that each is in the machine code; the number of compiled functions."""
    count = 0
    for (_, definitions), (source, members) in units(chosen, variants).items():
        code = compiled(text(source, dict(definitions)), architecture, options)
        for member in members:
            assert member.name.encode() in code, f"{member.name} is missing"
        count += len(members)
    return count


def selected(arguments: list[str]) -> tuple[list[Function], Callable[[Function], list[dict[str, str]]]]:
    """The functions and the variants of each that a command line asks for."""
    files = [f'#include "{name}"' for name in arguments if name != "--all"]
    chosen = [function for function in functions() if function.source in files or not files]
    return chosen, Function.variants if "--all" in arguments else sample


if __name__ == "__main__":
    chosen, variants = selected(sys.argv[1:])
    for architecture in ARCHITECTURES:
        count = compile_all(chosen, architecture, variants)
        print(f"{architecture}: {len(chosen)} functions compiled, in {count} variants")
