"""Elements of bool: what is not 0 is True, also where NumPy compares bytes and takes True for 1."""

from __future__ import annotations

from collections.abc import Callable


def as_bool(xp, array):
    """The array with bytes 0 and 1, if it is of bool, else itself."""
    return xp.not_equal(array.view(xp.uint8), 0) if array.dtype.kind == "b" else array


def of_bools(xp, ufunc) -> Callable:
    """A ufunc as a kernel for bool."""

    def kernel(*arrays, out=None):
        return ufunc(*(as_bool(xp, array) for array in arrays), out=out)

    kernel.takes_out = True  # type: ignore[attr-defined]
    return kernel
