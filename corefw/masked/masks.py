"""Masks: how they fit a tensor, and what stands where they are False."""

from __future__ import annotations

from math import inf

from corefw import dtypes
from corefw.dispatch.declare import ops
from corefw.dtypes import dtype as dtype_class
from corefw.dtypes import iinfo
from corefw.tensor import Tensor


def fitting(name: str, input: Tensor, mask: Tensor | None) -> Tensor | None:
    """The mask as one of bool and of the shape of `input`."""
    if mask is None:
        return None
    if mask.ndim > input.ndim:
        raise IndexError(
            f"masked.{name}: expected broadcastable mask (got mask dimensionality higher than of the input): "
            f"{mask.ndim} and {input.ndim}"
        )
    return mask.to(dtypes.bool_).expand(input.shape)


def filled(name: str, input: Tensor, mask: Tensor | None, value: float, dtype: dtype_class | None = None) -> Tensor:
    """`input`, converted to `dtype` if one is given, with `value` where it is masked out, which has no gradient."""
    if dtype is not None:
        input = input.to(dtype)
    found = fitting(name, input, mask)
    return input if found is None else ops.where(found, input, input.new_full((), value))


def summed(input: Tensor, dtype: dtype_class | None) -> dtype_class:
    """The dtype of sums and products: int64 for integers and bool, if none is given."""
    return dtype or (input.dtype if input.dtype.is_floating_point or input.dtype.is_complex else dtypes.int64)


def floating(name: str, input: Tensor, dtype: dtype_class | None) -> dtype_class:
    """The dtype of what has fractions; refuses integers where none is given."""
    found = input.dtype if dtype is None else dtype
    if not (found.is_floating_point or found.is_complex):
        raise ValueError(
            f"masked.{name}: Could not infer output dtype. Input dtype must be either a floating point or complex "
            f"dtype. Got: {found!r}. Give dtype=."
        )
    return found


def bound(input: Tensor, largest: bool) -> float:
    """The largest or smallest value of a tensor's dtype."""
    if input.dtype.is_floating_point:
        return inf if largest else -inf
    if input.dtype is dtypes.bool_:
        return largest
    limits = iinfo(input.dtype)
    return limits.max if largest else limits.min


def all_dims(input: Tensor, dim) -> tuple[int, ...]:
    """The dimensions to reduce, as a tuple; None and () stand for all."""
    if dim is None or dim == ():
        return tuple(range(input.ndim))
    return (dim,) if isinstance(dim, int) else tuple(dim)
