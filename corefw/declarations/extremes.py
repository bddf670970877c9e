"""Largest and smallest elements, and where they are."""

from __future__ import annotations

from math import prod
from typing import overload

from corefw import return_types
from corefw.declarations._shared.batching import along, reduced, reduced_along_one
from corefw.declarations._shared.picking import picked_vjp
from corefw.dispatch.declare import Dim, Dims, composite, ops, primitive
from corefw.dispatch.rules import index, ordered, picks
from corefw.errors import DimensionError, ShapeError
from corefw.shapes import canonical_dim, nonempty, picked
from corefw.tensor import Tensor


@primitive(dtype=ordered, shape=nonempty("amax"), out=True, grad_name=lambda dim: "Max1" if dim is None else "Amax")
def amax(input, dim: Dims = (), keepdim: bool = False):
    """The largest element over the dimensions `dim`; NaN where there is one. Equal largest elements share the gradient.

    Args:
        input: any shape.
        dim: the dimensions to reduce; () or None for all.
        keepdim: keep the reduced dimensions with size 1.

    Raises:
        RuntimeError, IndexError: if there is nothing to choose from.

    >>> import corefw as torch
    >>> torch.tensor([[1.0, 4.0], [3.0, 2.0]]).amax((0, 1))
    tensor(4.)
    """


amax.batching(reduced)


@primitive(dtype=ordered, shape=nonempty("amin"), out=True, grad_name=lambda dim: "Min1" if dim is None else "Amin")
def amin(input, dim: Dims = (), keepdim: bool = False):
    """The smallest element over the dimensions `dim`; NaN where there is one. Otherwise as `amax`.

    >>> import corefw as torch
    >>> torch.tensor([[1.0, 4.0], [3.0, 2.0]]).amin(1)
    tensor([1., 2.])
    """


amin.batching(reduced)


def _extreme_gradient(grad, input, out, dim, keepdim, input_shape):
    return ops.distribute(grad, input == ops.expand_reduced(out, dim, keepdim, input_shape), dim, keepdim, input_shape)


for _extreme in (amax, amin):
    _extreme.gradient("input")(_extreme_gradient)


@composite(out=True, outputs=("min", "max"))
def aminmax(input, *, dim: Dim | None = None, keepdim: bool = False):
    """The smallest and the largest element, of all or along `dim`, as a named tuple ``(min, max)``.

    >>> import corefw as torch
    >>> torch.tensor([3.0, 1.0, 2.0]).aminmax().max
    tensor(3.)
    """
    if dim is not None:
        dim = canonical_dim(dim, input.ndim)
    elif not prod(input.array.shape):
        raise ShapeError("aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.")
    return aminmax.op.result_type(input.amin(dim, keepdim), input.amax(dim, keepdim))


@primitive(
    dtype=picks,
    shape=picked("max"),
    public="",
    outputs=("values", "indices"),
    result_name="max",
    grad_name="Max",
)
def max_dim(input, dim: Dim, keepdim: bool = False):
    """The largest elements along `dim` and the first positions where they are found; NaN counts as largest."""


max_dim.batching(along(0))


@primitive(
    dtype=picks,
    shape=picked("min"),
    public="",
    outputs=("values", "indices"),
    result_name="min",
    grad_name="Min",
)
def min_dim(input, dim: Dim, keepdim: bool = False):
    """The smallest elements along `dim` and the first positions where they are found; NaN counts as smallest."""


min_dim.batching(along(0))


@overload
def max_(input) -> Tensor: ...
@overload
def max_(input, dim: int, keepdim: bool = False) -> return_types.max: ...
@overload
def max_(input, other: Tensor) -> Tensor: ...
@composite(name="max", out=True)
def max_(input, dim: int | None = None, keepdim: bool = False, *, other=None):
    """The largest of all elements; the largest along `dim`, as a named tuple ``(values, indices)``; or with a tensor in
    place of `dim`, the elementwise `maximum` of two.

    Args:
        input: any shape.
        dim: the dimension to reduce, or the other tensor.
        keepdim: keep the reduced dimension with size 1.
        other: the other tensor.

    Equal largest elements share the gradient of ``max()``; ``max(dim)`` gives it to the position it names.

    >>> import corefw as torch
    >>> torch.tensor([[1.0, 4.0], [3.0, 2.0]]).max(1).indices
    tensor([1, 0])
    """
    if dim is None:
        return input.amax() if other is None else ops.maximum(input, other)
    return ops.maximum(input, dim) if isinstance(dim, Tensor) else ops.max_dim(input, dim, keepdim)


@overload
def min_(input) -> Tensor: ...
@overload
def min_(input, dim: int, keepdim: bool = False) -> return_types.min: ...
@overload
def min_(input, other: Tensor) -> Tensor: ...
@composite(name="min", out=True)
def min_(input, dim: int | None = None, keepdim: bool = False, *, other=None):
    """The smallest of all elements, along `dim`, or of two tensors elementwise; arguments as for `max`.

    >>> import corefw as torch
    >>> torch.tensor([[1.0, 4.0], [3.0, 2.0]]).min(0).values
    tensor([1., 2.])
    """
    if dim is None:
        return input.amin() if other is None else ops.minimum(input, other)
    return ops.minimum(input, dim) if isinstance(dim, Tensor) else ops.min_dim(input, dim, keepdim)


@primitive(dtype=index.without("bool", "complex"), shape=nonempty("argmax", DimensionError), out=True)
def argmax(input, dim: Dim | None = None, keepdim: bool = False):
    """The first position of the largest element along `dim`, or in the flattened tensor; NaN counts as largest.

    >>> import corefw as torch
    >>> torch.tensor([[1.0, 4.0], [3.0, 2.0]]).argmax()
    tensor(1)
    """


argmax.batching(reduced_along_one)


@primitive(dtype=index.without("bool", "complex"), shape=nonempty("argmin", DimensionError), out=True)
def argmin(input, dim: Dim | None = None, keepdim: bool = False):
    """The first position of the smallest element along `dim`, or in the flattened tensor; NaN counts as smallest.

    >>> import corefw as torch
    >>> torch.tensor([[1.0, 4.0], [3.0, 2.0]]).argmin(1)
    tensor([0, 1])
    """


argmin.batching(reduced_along_one)


for _pick in (max_dim, min_dim):
    _pick.gradient("input")(picked_vjp)
