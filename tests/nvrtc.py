"""Compiles the CUDA sources of the CuPy backend with NVRTC, which needs no GPU and no driver.

Run it to see all functions of some files compile: python -m tests.nvrtc softmax.cu
"""

import sys
from collections import defaultdict

import numpy as np
from cupy_backends.cuda.libs import nvrtc

from corefw_cupy import table
from corefw_cupy.cuda import Cuda
from corefw_cupy.faults import Faults
from corefw_cupy.launch import OPTIONS, Function, text
from tests.emulation.namespace import namespace

ARCHITECTURES = ("sm_80", "sm_90")


def available() -> bool:
    """Whether NVRTC is installed."""
    try:
        nvrtc.getVersion()
    except RuntimeError:
        return False
    return True


def functions() -> list[Function]:
    """All CUDA functions of the backend."""
    made = Cuda(namespace(), Faults(np.zeros(4, np.int64), lambda: None, blocking=False))
    table(made)
    return made.functions


def units(chosen: list[Function], architecture: str) -> dict[tuple, tuple[str, list[Function]]]:
    """What is compiled at once, (source, its functions) by definitions: each file, and all generated sources together.

    For the newest architecture, functions are compiled with all definitions (those with 64-bit offsets for one element
    type), for older ones with the first.
    """
    found = defaultdict(list)
    for function in chosen:
        file = function.source if "__global__" not in function.source else ""
        first, *others = function.variants()
        for definitions in [first, *others] if architecture == ARCHITECTURES[-1] else [first]:
            if definitions.get("SIZE") == "int64" and definitions["T"] != first["T"]:
                continue
            key = tuple(item for item in definitions.items() if item != ("SIZE", "int32"))  # int32 is what is assumed
            found[file, key].append(function)
    return {
        key: ("\n".join(dict.fromkeys(member.source for member in members)), members) for key, members in found.items()
    }


def compile(source: str, definitions: dict[str, str], architecture: str) -> bytes:
    """The machine code of a source."""
    program = nvrtc.createProgram(text(source, definitions), "source.cu", (), ())
    try:
        nvrtc.compileProgram(program, [*OPTIONS, f"-arch={architecture}"])
        return nvrtc.getCUBIN(program)
    except nvrtc.NVRTCError as error:
        raise RuntimeError(f"{source[:60]} with {definitions}:\n{nvrtc.getProgramLog(program)}") from error
    finally:
        nvrtc.destroyProgram(program)


def compile_all(chosen: list[Function], architecture: str) -> int:
    """Compiles functions, and sees that each is in the machine code; the number of compiled functions."""
    count = 0
    for (_, definitions), (source, members) in units(chosen, architecture).items():
        code = compile(source, dict(definitions), architecture)
        for member in members:
            assert member.name.encode() in code, f"{member.name} is missing"
        count += len(members)
    return count


if __name__ == "__main__":
    files = [f'#include "{name}"' for name in sys.argv[1:]]
    chosen = [function for function in functions() if function.source in files or not files]
    for architecture in ARCHITECTURES:
        print(f"{architecture}: {len(chosen)} functions compiled, in {compile_all(chosen, architecture)} variants")
