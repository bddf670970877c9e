"""The array API's Fourier transforms: those of `corefw.fft`, with the standard's arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import corefw
from corefw.dtypes import dtype
from corefw.tensor import Tensor


def _one(name: str) -> Callable[..., Tensor]:
    """The transform `name` along one axis."""
    op = getattr(corefw.fft, name)

    def function(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
        return op(x, n, axis, norm)

    return _called(function, name)


def _several(name: str) -> Callable[..., Tensor]:
    """The transform `name` along several axes."""
    op = getattr(corefw.fft, name)

    def function(x: Tensor, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
        return op(x, s, axes, norm)

    return _called(function, name)


def _shift(name: str) -> Callable[..., Tensor]:
    """The exchange `name` of the halves of axes."""
    op = getattr(corefw.fft, name)

    def function(x: Tensor, /, *, axes: int | tuple[int, ...] | None = None) -> Tensor:
        return op(x, axes)

    return _called(function, name)


def _frequencies(name: str) -> Callable[..., Tensor]:
    """The frequencies `name` of a transform of `n` samples that lie `d` apart."""
    op = getattr(corefw.fft, name)

    def function(n: int, /, *, d: float = 1.0, dtype: dtype | None = None, device: Any = None) -> Tensor:
        return op(n, d, dtype=dtype, device=device)

    return _called(function, name)


def _called(function: Callable, name: str) -> Callable:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The array API's `{name}`: `corefw.fft.{name}` with the standard's arguments."
    return function


fft, ifft, rfft, irfft, hfft, ihfft = map(_one, ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"))
fftn, ifftn, rfftn, irfftn = map(_several, ("fftn", "ifftn", "rfftn", "irfftn"))
fftfreq, rfftfreq = map(_frequencies, ("fftfreq", "rfftfreq"))
fftshift, ifftshift = map(_shift, ("fftshift", "ifftshift"))

__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]
