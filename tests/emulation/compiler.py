"""Compiles CUDA sources as C++ and calls what comes out."""

import ctypes
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import weakref
from collections.abc import Callable
from functools import cache
from pathlib import Path

import cupy
import numpy as np
from cupy.cuda.function import CPointer

from tests.emulation import capture, driver, launches, memory, queue
from tests.emulation.modes import MODES

HEADER = Path(__file__).with_name("emulator.h")
VARIABLES = Path(__file__).with_name("emulator.cpp")
FOLDER = Path(tempfile.gettempdir()) / f"corefw-emulated-{os.getuid()}"
COMPILER = shutil.which("g++") or shutil.which("clang++")
# What -O1 would do more, kernels of a few elements do not gain; their compilation would take half as long again.
FLAGS = ["-std=c++20", "-Og", "-fPIC", "-w", "-U_FORTIFY_SOURCE", "-ffp-contract=off"]
FLAGS += ["-fno-strict-aliasing", "-fno-gnu-unique"]  # a library's inline variables stay its own
KERNEL = re.compile(r'^extern "C" __global__ void (?:__launch_bounds__\(.*?\)\s*)?(\w+)\(', re.MULTILINE)
MOST_SHARED = 227 << 10  # bytes of shared memory of a block on sm_90


def library(text: str) -> ctypes.CDLL:
    """A source as a library, compiled once per content for all processes."""
    text += "".join(f"\nEMULATED_KERNEL({name})" for name in KERNEL.findall(text))
    _variables()
    return _loaded(text, ctypes.RTLD_LOCAL)


@cache
def _variables() -> ctypes.CDLL:
    """The variables that all libraries use."""
    variables = _loaded(VARIABLES.read_text(), ctypes.RTLD_GLOBAL)
    ctypes.c_bool.in_dll(variables, "emulated_backwards").value = "reversed" in MODES
    return variables


def _loaded(text: str, mode: int) -> ctypes.CDLL:
    header = HEADER.read_text()

    def compile(source: Path, made: Path) -> None:
        source.write_text(text)
        _run(source, "-shared", "-include", _compiled_header(header), source, "-o", made)

    return ctypes.CDLL(str(_made_once("\0".join([header, text, *FLAGS]), ".so", compile)), mode)


@cache
def _compiled_header(text: str) -> Path:
    """The header, beside which the compiler finds it compiled: most libraries are smaller than it."""

    def compile(source: Path, made: Path) -> None:
        header = source.with_suffix(".h")
        header.write_text(text)
        _run(header, "-x", "c++-header", header, "-o", made)

    return _made_once("\0".join([text, *FLAGS]), ".h.gch", compile).with_suffix("")


def _made_once(content: str, suffix: str, compile: Callable[[Path, Path], None]) -> Path:
    """The file with this suffix that is made of this content, by whichever process comes first."""
    key = hashlib.sha256(content.encode()).hexdigest()[:32]
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{key}{suffix}"
    with open(FOLDER / f"{key}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            made = FOLDER / f"{key}.{os.getpid()}"
            compile(FOLDER / f"{key}.cpp", made)
            made.rename(path)
    return path


def _run(source: Path, *arguments: str | Path) -> None:
    result = subprocess.run([COMPILER, *FLAGS, *arguments], capture_output=True, text=True)
    if result.returncode:
        raise RuntimeError(f"{source} does not compile:\n{result.stderr[:4000]}")


def _argument(kind: str, value, name: str):
    """A value as the memory that holds it, refused where CUDA would read something else."""
    if kind == "p" and hasattr(value, "data") and not isinstance(value, np.ndarray):
        return ctypes.c_uint64(value.data.ptr)
    accepted = {"p": int, "i": int, "d": float, "b": bool}
    if kind in accepted and type(value) is accepted[kind]:
        return {"p": ctypes.c_uint64, "i": ctypes.c_int64, "d": ctypes.c_double, "b": ctypes.c_bool}[kind](value)
    if kind == "s" and type(value) is complex:
        return (ctypes.c_char * 16).from_buffer_copy(np.array(value))
    if kind == "s" and isinstance(value, CPointer):  # an array costs 2.5 us: see launch.argument
        held = bytes(value.memory)
        return (ctypes.c_char * len(held)).from_buffer_copy(held)
    raise TypeError(f"{name}: {value!r} was passed for a parameter of kind {kind!r}")


def launcher(loaded: ctypes.CDLL, name: str) -> Callable:
    """What launches a kernel, called as CuPy's RawKernel is."""
    function = getattr(loaded, f"emulated_{name}")
    described = getattr(loaded, f"signature_{name}")
    described.restype = ctypes.c_char_p
    signature = described().decode()

    def launch(grid, block, arguments, *, shared_mem=0):
        grid, block = ((*sizes, 1, 1)[:3] for sizes in (grid, block))
        if not (0 < grid[0] < 1 << 31 and 0 < grid[1] < 1 << 16 and 0 < grid[2] < 1 << 16):
            raise ValueError(f"{name}: no device takes a grid of {grid} blocks")
        if not 0 < block[0] * block[1] * block[2] <= 1024:
            raise ValueError(f"{name}: no device takes a block of {block} threads")
        if shared_mem > MOST_SHARED:
            raise ValueError(f"{name}: no device has {shared_mem} bytes of shared memory for a block")
        if len(arguments) != len(signature):
            raise TypeError(f"{name} takes {len(signature)} arguments, {len(arguments)} were given")
        held = [_argument(kind, value, name) for kind, value in zip(signature, arguments)]
        stream = driver.get_current_stream().ptr
        blocks = memory.blocks_of([value for value in arguments if isinstance(value, cupy.ndarray)])
        if capture.of(stream) is not None:  # a graph keeps nothing alive
            blocks = [*map(weakref.ref, blocks)]

        def work():
            living = [block() if isinstance(block, weakref.ref) else block for block in blocks]
            if None in living:
                raise RuntimeError(f"{name} was captured with memory that has been given back")
            pointers = (ctypes.c_void_p * len(held))(*(ctypes.addressof(h) for h in held))
            if not function((ctypes.c_uint * 3)(*grid), (ctypes.c_uint * 3)(*block), pointers):
                raise RuntimeError(f"{name}: some threads wait at a barrier that others never reach")
            memory.check(name, living)

        launches.launched(name)
        queue.submit(work, stream)

    return launch
