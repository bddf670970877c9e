"""Discrete Fourier transforms, under PyTorch's names."""

from __future__ import annotations

from corefw.dispatch.names import published as _published
from corefw.dispatch.registry import registry as _registry

_NAMES = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]
globals().update(_published("corefw.fft", {_name: _registry.declared[f"fft_{_name}"].function for _name in _NAMES}))

__all__ = _NAMES
