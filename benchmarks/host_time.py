"""Host time of calls on the CuPy backend: what they cost the program while the device does nothing. Needs no GPU.

python -m benchmarks.host_time [--select WORDS] [--profile]

The tables, shims and arrays are those of `cuda`; memory has addresses and no bytes, and launches and cuBLAS return at
once: what they take in CuPy and in the driver comes on top. A time is processor time, the least of many repeats.
"""

from __future__ import annotations

import argparse
import cProfile
import ctypes
import pstats
import time
from collections.abc import Callable
from itertools import count
from types import SimpleNamespace
from typing import Any

import cupy
import numpy as np
from cupy.cuda.function import CNumpyArray

import corefw
from corefw.dispatch.registry import registry
from corefw_cupy import backend
from corefw_cupy.cublas_lt import PROTOTYPES
from corefw_cupy.cuda import Cuda
from corefw_cupy.device_asserts import DeviceAsserts
from corefw_cupy.runtime import CupyRuntime
from tests.emulation.namespace import namespace

REPEATS, SECONDS = 25, 0.004  # of a row, and of a repeat
IDLE = namespace()
HOOKS = IDLE.cuda.MemoryHook.active
addresses = count(1 << 32, 512)


def nothing(*arguments: object) -> None:
    """A call of cuBLAS, or a wait."""


def one_found(*arguments: Any) -> None:
    """The search for an algorithm."""
    arguments[-1]._obj.value = 1


def launch(grid: tuple, block: tuple, arguments: tuple, shared_mem: int = 0) -> None:
    """A launch, which asks an array of NumPy for its address as CuPy's does."""
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            CNumpyArray(argument)


class IdleCuda(Cuda):
    """Functions that are not compiled."""

    def compile(self, function, definitions):
        return launch

    def cublas_lt(self):
        """A library whose product is a call of C, by ctypes as the real one."""
        multiply = ctypes.CDLL(None)["labs"]  # which returns its first argument: of the handle 0 success
        multiply.argtypes = PROTOTYPES["cublasLtMatmul"]
        own = {"cublasLtMatmul": multiply, "cublasLtMatmulAlgoGetHeuristic": one_found}
        return SimpleNamespace(**dict.fromkeys(PROTOTYPES, nothing) | own)


class IdleRuntime(CupyRuntime):
    """A device type of one device."""

    device_type = "idle"

    def device_count(self):
        return 1


def allocate(size: int) -> cupy.cuda.MemoryPointer:
    """Memory that is taken back at once; tells hooks as CuPy's pool does."""
    address = next(addresses)
    for hook in HOOKS:
        hook.malloc_postprocess(device_id=0, size=size, mem_size=size, mem_ptr=address, pmem_id=0)
        hook.free_postprocess(device_id=0, mem_size=size, mem_ptr=address, pmem_id=0)
    return cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(address, size, None, 0), 0)


def install() -> None:
    """Make the device `idle` the default one."""
    cupy.cuda.set_allocator(allocate)
    IDLE.empty, IDLE.cuda.cublas = cupy.empty, SimpleNamespace(gemmEx=nothing, gemmStridedBatchedEx=nothing)
    cuda = IdleCuda(IDLE, DeviceAsserts(np.zeros(4, np.int64), nothing, blocking=False))
    registry.add_backend(backend(cuda, IdleRuntime(cuda), name="idle"))
    corefw.set_default_device("idle")


def rows() -> dict[str, Callable[[], Any]]:
    """The calls by name."""
    F, nn = corefw.nn.functional, corefw.nn
    a, b, wide = corefw.empty(64, 64), corefw.empty(64, 64), corefw.empty(8, 64, 64)
    row, column, positions = corefw.empty(64), corefw.empty(64, 1), corefw.empty(64, dtype=corefw.int64)
    mask, leaf = corefw.empty(64, 64, dtype=corefw.bool), corefw.empty(64, 64, requires_grad=True)
    half = corefw.empty(64, 64, dtype=corefw.bfloat16)
    parameters = [corefw.empty(64, 64, requires_grad=True) for _ in range(4)]
    for parameter in parameters:
        parameter.grad = corefw.empty(64, 64)
    steps = {
        name: getattr(corefw.optim, name)(parameters, **options).step
        for name, options in {"SGD": {"lr": 0.1, "momentum": 0.9}, "Adam": {"lr": 0.1}}.items()
    }
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
    optimizer = corefw.optim.Adam(model.parameters())

    def training_step():
        loss = F.cross_entropy(model(a), positions)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return {
        "empty": lambda: corefw.empty_like(a),
        "add": lambda: a + b,
        "add (number)": lambda: a + 2.0,
        "add (row)": lambda: a + row,
        "add (column)": lambda: a + column,
        "add (bfloat16, number)": lambda: half + 2.0,
        "add in place": lambda: a.add_(b),
        "mul with gradient": lambda: leaf * b,
        "exp": lambda: a.exp(),
        "relu": lambda: a.relu(),
        "where": lambda: corefw.where(mask, a, b),
        "cast": lambda: a.bfloat16(),
        "clone": lambda: a.clone(),
        "transpose, contiguous": lambda: a.t().contiguous(),
        "sum": lambda: a.sum(),
        "mean of rows": lambda: a.mean(1),
        "amax of columns": lambda: a.amax(0),
        "softmax": lambda: a.softmax(1),
        "layer_norm": lambda: F.layer_norm(a, (64,), row, row),
        "mm": lambda: a @ b,
        "bmm": lambda: wide @ wide,
        "linear": lambda: F.linear(a, b, row),
        "a row": lambda: a[3],
        "index": lambda: a[positions],
        "embedding": lambda: F.embedding(positions, a),
        "cat": lambda: corefw.cat([a, b]),
        "dropout": lambda: F.dropout(a, 0.5),
        "cross_entropy": lambda: F.cross_entropy(a, positions),
        "relu and backward": lambda: leaf.relu().backward(b),
        "SGD step": steps["SGD"],
        "Adam step": steps["Adam"],
        "training step (two layers, Adam)": training_step,
    }


def time_of(call: Callable[[], Any]) -> float:
    """Seconds of a call."""
    for _ in range(10):
        call()
    calls, best, clock = 1, float("inf"), time.process_time
    while True:
        start = clock()
        for _ in range(calls):
            call()
        if (spent := clock() - start) > SECONDS / 2:
            break
        calls *= 2
    for _ in range(REPEATS):
        start = clock()
        for _ in range(calls):
            call()
        best = min(best, clock() - start)
    return min(best, spent) / calls


def profile(call: Callable[[], Any]) -> None:
    """Print where the time of a call goes."""
    profiler = cProfile.Profile()
    profiler.enable()
    for _ in range(20000):
        call()
    profiler.disable()
    pstats.Stats(profiler).sort_stats("tottime").print_stats(15)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--select", default="", help="only rows whose name holds one of these words, between commas")
    parser.add_argument("--profile", action="store_true", help="say where the time goes")
    options = parser.parse_args()
    install()
    for name, call in rows().items():
        if any(word in name for word in options.select.split(",")):
            print(f"{name:34} {1e6 * time_of(call):8.2f} us", flush=True)
            if options.profile:
                profile(call)


if __name__ == "__main__":
    main()
