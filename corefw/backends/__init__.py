"""The installed backends, `corefw.backends()`; also the place of PyTorch's switches
(`corefw.backends.cudnn.benchmark`)."""

from __future__ import annotations

import sys
from types import ModuleType

from corefw.backends import cpu, cuda, cudnn, mkl, mkldnn, mps, nnpack, openmp, opt_einsum, quantized
from corefw.dispatch.inspect import BackendInfo, backends

__all__ = [
    "BackendInfo",
    "cpu",
    "cuda",
    "cudnn",
    "mkl",
    "mkldnn",
    "mps",
    "nnpack",
    "openmp",
    "opt_einsum",
    "quantized",
]


class _Callable(ModuleType):
    """A module that is also the function listing the backends."""

    __doc__ = backends.__doc__

    def __call__(self) -> list[BackendInfo]:
        return backends()


sys.modules[__name__].__class__ = _Callable
