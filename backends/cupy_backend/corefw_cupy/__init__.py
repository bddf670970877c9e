"""The CuPy backend of corefw: every op on the device `cuda`.

One file per family of ops, named as in `corefw.declarations`: ``kernels(cuda)`` gives the family's kernels, built on
CUDA functions in source/ and on NVIDIA's libraries through CuPy. Importing this package needs neither CuPy nor a GPU.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from importlib import import_module

import pluggy

from corefw import dtypes
from corefw.dispatch.backend import Backend, Kernel
from corefw.dispatch.families import families
from corefw_cupy.cuda import Cuda
from corefw_cupy.device_asserts import DeviceAsserts
from corefw_cupy.runtime import CupyRuntime

__version__ = "0.1.0"

#: CuPy's modules over the libraries of CUDA that kernels need
LIBRARIES = {
    "NVRTC": "cupy_backends.cuda.libs.nvrtc",
    "cuBLAS": "cupy_backends.cuda.libs.cublas",
    "cuFFT": "cupy.cuda.cufft",
    "cuSOLVER": "cupy_backends.cuda.libs.cusolver",
}


def table(cuda: Cuda) -> list[Kernel]:
    """All kernels, over functions that `cuda` compiles."""
    return [kernel for family in families(__name__) for kernel in family.kernels(cuda)]


def unusable() -> str | None:
    """Why there is no CUDA device for us here, or None."""
    try:
        import cupy
    except ImportError as error:
        return f'CuPy cannot be imported ({error}): install "corefw-cupy[cuda13]" (or cuda12, as the driver needs)'
    try:
        if cupy.cuda.runtime.getDeviceCount() == 0:
            return "the driver finds no GPU"
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"no CUDA driver, or one too old for this CuPy ({error})"
    for library, module in LIBRARIES.items():
        try:
            found = import_module(module)
            if library == "NVRTC":  # which CuPy looks for in the first call
                found.getVersion()
        except Exception as error:  # ImportError or RuntimeError, by the way in which the library is not there
            said = next(iter(str(error).strip().splitlines()), type(error).__name__)
            return (
                f'{library} cannot be loaded ({said}): install "corefw-cupy[cuda13]" (or cuda12, as the driver needs)'
            )
    return None


@pluggy.HookimplMarker("corefw")
def corefw_backend() -> Backend:
    """The plugin hook."""
    if reason := unusable():
        return Backend(name="cupy", version=__version__, devices=("cuda",), unusable=reason)
    import cupy

    device_asserts = DeviceAsserts.shared(cupy, blocking=os.environ.get("CUDA_LAUNCH_BLOCKING") == "1")
    cuda = Cuda(cupy, device_asserts)
    return backend(cuda, CupyRuntime(cuda))


def executor(runtime: CupyRuntime) -> Callable:
    """What makes runs of plans on a kind of device. Nothing of it is imported before the first plan."""
    return lambda plan: import_module("corefw_cupy.replaying").run_of(plan, runtime)


def fuse(cuda: Cuda) -> Callable:
    """What makes kernels of fusions. Nothing of it is imported before the first one."""

    @cache
    def maker():
        return import_module("corefw_cupy.fusing").maker(cuda)

    return lambda fusion: maker()(fusion)


def backend(cuda: Cuda, runtime: CupyRuntime, name: str = "cupy") -> Backend:
    """The backend over given functions and memory."""
    device = runtime.device_type
    return Backend(
        name=name,
        version=__version__,
        devices=(device,),
        kernels={device: table(cuda)},
        runtimes={device: runtime},
        compute_dtype={dtypes.float16: dtypes.float32, dtypes.bfloat16: dtypes.float32},
        settings=("CUPY_CACHE",),
        executor=executor(runtime),
        fuse=fuse(cuda),
    )
