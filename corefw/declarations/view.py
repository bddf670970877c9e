"""Ops whose results share memory with their inputs: arithmetic on shapes, strides and offsets.

The body of a view op maps a geometry - (shape, strides, offset) in elements - to the result's.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, overload

from corefw import dtypes
from corefw.dispatch.declare import Dim, GivenDims, Sizes, composite, ops, primitive
from corefw.dispatch.declare import view as view_op
from corefw.dispatch.promotion import unpacked
from corefw.dispatch.rules import same
from corefw.errors import ShapeError
from corefw.shapes import as_shape, broadcast, canonical_dim, infer_size, view_strides
from corefw.tensor import Tensor


# -- reshaping --------------------------------------------------------------------------------------------------------
@view_op(dtype=same, grad_name="View", public="")
def view_size(input, size: Sizes):
    """The elements of `input` under another shape, without a copy."""
    shape, strides, offset = input
    size = infer_size(size, prod(shape))
    found = view_strides(shape, strides, size)
    if found is None:
        raise ShapeError(
            f"view size {list(size)} is not compatible with input tensor's size {list(shape)} and stride "
            f"{list(strides)} (at least one dimension spans across two contiguous subspaces). Use .reshape(...) "
            "instead."
        )
    return size, found, offset


view_size.gradients(input=lambda grad, input_shape: grad.reshape(input_shape))


@composite(public="Tensor")
def view(
    input, *shape: int | Sequence[int] | dtypes.dtype, size: Sizes | None = None, dtype: dtypes.dtype | None = None
):
    """The elements of `input` under another shape, or its bytes as elements of another dtype, without a copy.

    Args:
        input: any shape.
        shape: the new sizes, as one sequence or separately; one of them may be -1 and is inferred. Or a dtype: then
            the last dimension is scaled by the ratio of the element sizes.
        size, dtype: the same by keyword.

    Raises:
        ShapeError: the number of elements differs, or the memory cannot be shown under these sizes without a copy
            (`reshape` copies then).

    >>> import corefw as torch
    >>> torch.arange(6).view(2, -1)
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    if len(shape) == 1 and shape[0].__class__ is dtypes.dtype:
        return ops.view_dtype(input, shape[0])
    if dtype is not None:
        return ops.view_dtype(input, dtype)
    return _view_size(input, shape if size is None else size)


_view_size = view_size.op.function


@composite(public="Tensor")
def view_as(input, other):
    """`input` under the shape of `other`, without a copy.

    >>> import corefw as torch
    >>> torch.arange(4).view_as(torch.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return _view_size(input, other.array.shape)


@primitive(dtype=same, shape=lambda input, size: infer_size(size, prod(input)), public="")
def unsafe_view(input, size: Sizes):
    """A contiguous copy of `input` under another shape."""


@unsafe_view.batching
def unsafe_view_batching(call, examples, input, size):
    return call(input, (input.shape[0], *size))


unsafe_view.gradients(input=lambda grad, input_shape: grad.reshape(input_shape))
unsafe_view.linear("input")


@composite()
def reshape(input, shape: Sizes):
    """`input` under another shape: a view where the memory allows it, else a copy.

    Args:
        input: any shape.
        shape: the new sizes; one of them may be -1 and is inferred.

    >>> import corefw as torch
    >>> torch.reshape(torch.arange(6), (3, 2))
    tensor([[0, 1],
            [2, 3],
            [4, 5]])
    """
    return _reshaped(input, shape)


def _reshaped(input, shape) -> Tensor:
    array = input.array
    if input.dispatch_key.runtime.is_contiguous(array):
        return _view_size(input, shape)
    size = infer_size(as_shape(shape), prod(array.shape))
    shown = view_strides(tuple(array.shape), tuple(array.strides), size)
    return unsafe_view(input, size) if shown is None else _view_size(input, size)


@composite(public="Tensor")
def reshape_as(input, other):
    """`input` under the shape of `other`, copied where it must be.

    >>> import corefw as torch
    >>> torch.arange(4).reshape_as(torch.zeros(2, 2)).shape
    torch.Size([2, 2])
    """
    return _reshaped(input, other.array.shape)


@composite()
def flatten(input, start_dim: int = 0, end_dim: int = -1):
    """`input` with the dimensions from `start_dim` to `end_dim` joined into one.

    >>> import corefw as torch
    >>> torch.flatten(torch.zeros(2, 3, 4), start_dim=1).shape
    torch.Size([2, 12])
    """
    array = input.array
    shape = array.shape
    if start_dim == 0 and end_dim == -1 and len(shape) > 1:
        contiguous = input.dispatch_key.runtime.is_contiguous(array)
        return _view_size(input, (-1,)) if contiguous else _reshaped(input, (prod(shape),))
    first, last = canonical_dim(start_dim, len(shape)), canonical_dim(end_dim, len(shape))
    if first > last:
        raise ShapeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not shape:
        return _reshaped(input, (1,))
    if first == last:
        return input
    return _reshaped(input, (*shape[:first], prod(shape[first : last + 1]), *shape[last + 1 :]))


@composite()
def ravel(input):
    """`input` as one dimension, copied where it must be.

    >>> import corefw as torch
    >>> torch.ravel(torch.tensor([[1, 2], [3, 4]]))
    tensor([1, 2, 3, 4])
    """
    return _reshaped(input.contiguous(), (-1,))


@composite(other_names=True)
def unflatten(input, dim: int, sizes: Sequence[int]):
    """`input` with dimension `dim` split into several of the given `sizes`, one of which may be -1.

    >>> import corefw as torch
    >>> torch.unflatten(torch.zeros(2, 12), 1, (3, -1)).shape
    torch.Size([2, 3, 4])
    """
    shape = input.array.shape
    dim, sizes = canonical_dim(dim, len(shape)), as_shape(sizes)
    if not sizes:
        raise ShapeError("unflatten: sizes must be non-empty")
    if not shape:
        raise ShapeError("unflatten: the tensor has no dimension to split")
    try:
        inferred = infer_size(sizes, shape[dim])
    except ShapeError as error:
        raise ShapeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} ({shape[dim]}) in "
            "the input tensor"
        ) from error
    return _view_size(input, (*shape[:dim], *inferred, *shape[dim + 1 :]))


# -- reordering -------------------------------------------------------------------------------------------------------
@view_op(dtype=same, inplace=True, aliases=("swapaxes", "swapdims"))
def transpose(input, dim0: Dim, dim1: Dim):
    """`input` with two dimensions exchanged.

    >>> import corefw as torch
    >>> torch.transpose(torch.tensor([[1, 2], [3, 4]]), 0, 1)
    tensor([[1, 3],
            [2, 4]])
    """
    shape, strides, offset = input
    order = list(range(len(shape)))
    if order:
        order[dim0], order[dim1] = dim1, dim0
    return tuple(shape[d] for d in order), tuple(strides[d] for d in order), offset


transpose.gradients(input=lambda grad, dim0, dim1: grad.transpose(dim0, dim1))


@view_op(dtype=same, inplace=True)
def t(input):
    """The transpose of a matrix; a vector or a scalar is returned as it is.

    >>> import corefw as torch
    >>> torch.t(torch.zeros(2, 3)).shape
    torch.Size([3, 2])
    """
    shape, strides, offset = input
    if len(shape) > 2:
        raise ShapeError(f"t() expects a tensor with <= 2 dimensions, but self is {len(shape)}D")
    return shape[::-1], strides[::-1], offset


t.gradients(input=lambda grad: grad.t())


@view_op(dtype=same)
def permute(input, dims: Sizes):
    """`input` with its dimensions in the order `dims`.

    >>> import corefw as torch
    >>> torch.permute(torch.zeros(2, 3, 5), (2, 0, 1)).shape
    torch.Size([5, 2, 3])
    """
    shape, strides, offset = input
    if len(dims) != len(shape):
        raise ShapeError(
            "permute: number of dimensions in the tensor input does not match the length of the desired ordering of "
            f"dimensions i.e. input.dim() = {len(shape)} is not equal to len(dims) = {len(dims)}"
        )
    order = [canonical_dim(d, len(shape)) for d in dims]
    if len(set(order)) != len(order):
        raise ShapeError(f"permute(): duplicate dims are not allowed: {list(dims)}")
    return tuple(shape[d] for d in order), tuple(strides[d] for d in order), offset


_permute = permute.op.function


@permute.gradient("input")
def permute_vjp(grad, dims):
    inverse = [0] * len(dims)
    for position, dim in enumerate(dims):
        inverse[dim] = position
    return grad.permute(tuple(inverse))


@composite(aliases=("moveaxis",))
def movedim(input, source: int | Sequence[int], destination: int | Sequence[int]):
    """`input` with the dimensions `source` moved to the positions `destination`, the others in their order.

    >>> import corefw as torch
    >>> torch.movedim(torch.zeros(2, 3, 5), 0, -1).shape
    torch.Size([3, 5, 2])
    """
    ndim = input.array.ndim
    view_infos, targets = as_shape(source), as_shape(destination)
    if len(view_infos) != len(targets):
        raise ShapeError(
            f"movedim: Invalid source or destination dims: source ({list(view_infos)} dims) should contain the same "
            f"number of dims as destination ({list(targets)} dims)"
        )
    view_infos = tuple(canonical_dim(d, ndim) for d in view_infos)
    targets = tuple(canonical_dim(d, ndim) for d in targets)
    for name, dims in (("source", view_infos), ("destination", targets)):
        if len(set(dims)) != len(dims):
            raise ShapeError(f"movedim: repeated dim in `{name}` ({list(dims)})")
    if not ndim:
        return _alias(input)
    rest = iter([d for d in range(ndim) if d not in view_infos])
    placed = dict(zip(targets, view_infos, strict=True))
    return permute(input, tuple(placed[d] if d in placed else next(rest) for d in range(ndim)))


@view_op(dtype=same, public="")
def alias(input):
    """`input` as another tensor over the same memory."""
    return input


alias.gradients(input=lambda grad: grad)


_alias = alias.op.function


@composite()
def adjoint(input):
    """The conjugate transpose of matrices: the last two dimensions exchanged, complex values conjugated.

    >>> import corefw as torch
    >>> torch.tensor([[1.0, 2.0]]).adjoint().shape
    torch.Size([2, 1])
    """
    return transpose(input, -2, -1).conj() if input.array.ndim else input.conj()


# -- broadcasting -----------------------------------------------------------------------------------------------------
@view_op(dtype=same, public="Tensor")
def expand(input, size: Sizes):
    """`input` repeated along dimensions of size 1, and along new ones in front, without a copy.

    Args:
        input: any shape.
        size: the sizes wanted; -1 keeps a size.

    >>> import corefw as torch
    >>> torch.tensor([[1], [2]]).expand(-1, 3)
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    shape, strides, offset = input
    lead = len(size) - len(shape)
    if lead < 0:
        raise ShapeError(
            f"expand: the number of sizes provided ({len(size)}) must be greater or equal to the number of "
            f"dimensions in the tensor ({len(shape)}): {list(size)} for a tensor of shape {list(shape)}"
        )
    sizes, steps = list(size), [0] * len(size)
    for i in range(len(size) - 1, -1, -1):
        n = size[i]
        if i < lead:
            if n < 0:
                raise ShapeError(
                    f"The expanded size of the tensor ({n}) isn't allowed in a leading, non-existing dimension {i}"
                )
            steps[i] = sizes[i + 1] * steps[i + 1] if n == 1 and i + 1 < len(size) else 0
            continue
        here = shape[i - lead]
        if n in (-1, here):
            sizes[i], steps[i] = here, strides[i - lead]
        elif here != 1 or n < 0:
            raise ShapeError(
                f"The expanded size of the tensor ({n}) must match the existing size ({here}) at non-singleton "
                f"dimension {i}.  Target sizes: {list(size)}.  Tensor sizes: {list(shape)}"
            )
    return tuple(sizes), tuple(steps), offset


expand.gradients(input=lambda grad, input_shape: grad.sum_to_size(input_shape))


@composite(public="Tensor")
def expand_as(input, other):
    """`input` expanded to the shape of `other`.

    >>> import corefw as torch
    >>> torch.tensor([1, 2]).expand_as(torch.zeros(2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    return expand(input, other.array.shape)


@composite()
def broadcast_to(input, size: Sizes):
    """`input` expanded to the shape `size`.

    >>> import corefw as torch
    >>> torch.broadcast_to(torch.tensor([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    return expand(input, size)


@composite()
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """The tensors expanded to their common shape.

    >>> import corefw as torch
    >>> a, b = torch.broadcast_tensors(torch.zeros(2, 1), torch.zeros(3))
    >>> a.shape, b.shape
    (torch.Size([2, 3]), torch.Size([2, 3]))
    """
    tensors = unpacked(tensors)
    shape = broadcast(*(t.array.shape for t in tensors))
    return tuple(t if tuple(t.array.shape) == shape else expand(t, shape) for t in tensors)


# -- dimensions of size 1 ---------------------------------------------------------------------------------------------
def _squeeze_name(input_shape, shape):
    """Of all dimensions of size 1, of one, or of several: as far as it shows, one if there is only one."""
    removed, left = len(input_shape) - len(shape), shape.count(1)
    return "Squeeze1" if removed < 2 else "Squeeze2" if left else "Squeeze"


@view_op(dtype=same, inplace=True, grad_name=_squeeze_name)
def squeeze(input, dim: GivenDims = None):
    """`input` without its dimensions of size 1, or without those among `dim` (none if it is empty) that have size 1.

    >>> import corefw as torch
    >>> torch.squeeze(torch.zeros(1, 3, 1)).shape, torch.squeeze(torch.zeros(1, 3, 1), 0).shape
    (torch.Size([3]), torch.Size([3, 1]))
    """
    shape, strides, offset = input
    kept = [i for i, n in enumerate(shape) if n != 1 or (dim is not None and i not in dim)]
    return tuple(shape[i] for i in kept), tuple(strides[i] for i in kept), offset


squeeze.gradients(input=lambda grad, input_shape: grad.reshape(input_shape))


@view_op(dtype=same, inplace=True)
def unsqueeze(input, dim: int):
    """`input` with a dimension of size 1 inserted at position `dim`, counted in the result.

    >>> import corefw as torch
    >>> torch.unsqueeze(torch.tensor([1, 2]), -1)
    tensor([[1],
            [2]])
    """
    shape, strides, offset = input
    dim = canonical_dim(dim, len(shape) + 1)
    step = shape[dim] * strides[dim] if dim < len(shape) else 1
    return (*shape[:dim], 1, *shape[dim:]), (*strides[:dim], step, *strides[dim:]), offset


unsqueeze.gradients(input=lambda grad, input_shape: grad.reshape(input_shape))


def _insert_dimensions(tensors, few: int, insert):
    tensors = unpacked(tensors)
    results = tuple(insert(t) if t.array.ndim < few else t for t in tensors)
    return results[0] if len(results) == 1 else results


@overload
def atleast_1d(tensor: Tensor, /) -> Tensor: ...
@overload
def atleast_1d(*tensors: Any) -> Any: ...
@composite()
def atleast_1d(*tensors):
    """Each tensor with at least one dimension: a scalar becomes a vector of one element.

    >>> import corefw as torch
    >>> torch.atleast_1d(torch.tensor(3)).shape
    torch.Size([1])
    """
    return _insert_dimensions(tensors, 1, lambda t: reshape(t, (1,)))


@overload
def atleast_2d(tensor: Tensor, /) -> Tensor: ...
@overload
def atleast_2d(*tensors: Any) -> Any: ...
@composite()
def atleast_2d(*tensors):
    """Each tensor with at least two dimensions: a vector becomes a row.

    >>> import corefw as torch
    >>> torch.atleast_2d(torch.tensor([1, 2])).shape
    torch.Size([1, 2])
    """
    return _insert_dimensions(tensors, 2, lambda t: unsqueeze(t, 0) if t.array.ndim else reshape(t, (1, 1)))


@overload
def atleast_3d(tensor: Tensor, /) -> Tensor: ...
@overload
def atleast_3d(*tensors: Any) -> Any: ...
@composite()
def atleast_3d(*tensors):
    """Each tensor with at least three dimensions: a vector (n) becomes (1, n, 1), a matrix (n, m) becomes (n, m, 1).

    >>> import corefw as torch
    >>> torch.atleast_3d(torch.tensor([1, 2])).shape
    torch.Size([1, 2, 1])
    """

    def insert(t):
        if t.array.ndim == 2:
            return unsqueeze(t, -1)
        return unsqueeze(unsqueeze(t, 0), -1) if t.array.ndim else reshape(t, (1, 1, 1))

    return _insert_dimensions(tensors, 3, insert)


# -- properties -------------------------------------------------------------------------------------------------------
#: by the number of dimensions, which NumPy bounds, all of them from the last to the first
_DESCENDING = [tuple(range(ndim))[::-1] for ndim in range(65)]


def _reversed(input) -> Tensor:
    return _permute(input, _DESCENDING[input.array.ndim])


def _matrix_transpose(input, name: str = "mT") -> Tensor:
    if input.array.ndim < 2:
        raise ShapeError(
            f"tensor.{name} is only supported on matrices or batches of matrices. Got {input.array.ndim}-D tensor."
        )
    return transpose(input, -2, -1)


def _hermitian(input) -> Tensor:
    if input.array.ndim not in (0, 2):
        raise ShapeError(f"tensor.H is only supported on matrices (2-D tensors). Got {input.array.ndim}-D tensor.")
    return (transpose(input, 0, 1) if input.array.ndim else input).conj()


def _matrix_adjoint(input) -> Tensor:
    return _matrix_transpose(input, "mH").conj()


for _name, _getter, _doc in (
    ("T", _reversed, "The tensor with its dimensions in reversed order."),
    ("mT", _matrix_transpose, "The tensor with its last two dimensions exchanged."),
    ("H", _hermitian, "The conjugate transpose of a matrix."),
    ("mH", _matrix_adjoint, "The conjugate transpose of matrices in the last two dimensions."),
):
    setattr(Tensor, _name, property(_getter, doc=_doc))
