"""Gathering and scattering along a dimension, and by positions in the flattened tensor."""

from __future__ import annotations

from math import prod

from corefw import dtypes
from corefw.declarations._shared.batching import example_dims, full
from corefw.dispatch.declare import Dim, Index, composite, ops, primitive
from corefw.dispatch.numbers import Number, fitting_number
from corefw.dispatch.rules import first, same
from corefw.dispatch.slow_path import CorefwRuntimeError
from corefw.errors import DtypeError, PositionError, ShapeError
from corefw.shapes import broadcast, canonical_dim
from corefw.tensor import Tensor


# -- positions that differ between examples ---------------------------------------------------------------------------
def _vectors(tensor, examples: int):
    """A tensor with all examples, which are vectors of one element where they have no dimensions."""
    tensor = full(tensor, examples)
    return tensor if example_dims(tensor) else tensor.unsqueeze(1)


def _by_elements(input, dim: int, index, examples: int) -> tuple:
    """What indexes slices as what indexes elements: the input, the dimension, and the positions, for all examples."""
    rows, index = _vectors(input, examples), full(index, examples).reshape(examples, -1)
    shape = _replaced(rows.shape, dim + 1, index.shape[1])
    index = index.reshape([size if i in (0, dim + 1) else 1 for i, size in enumerate(shape)])
    return rows, dim + 1, index.expand(shape)


def _flat(input, index, examples: int) -> tuple:
    """Flattened examples, and positions in them that are counted from the beginning."""
    rows, index = (full(one, examples).reshape(examples, -1) for one in (input, index))
    return rows, ops.choose(index < 0, index + rows.shape[1], index)


# -- whole slices at positions of one dimension -----------------------------------------------------------------------
def _replaced(shape, dim: int, size: int):
    """`shape` with `size` in dimension `dim`; a 0-d shape has no dimension to replace."""
    return (*shape[:dim], size, *shape[dim + 1 :]) if shape else ()


def _check_vector(name: str, index) -> None:
    if len(index) > 1:
        raise PositionError(f"{name}(): Index is supposed to be a vector, but has shape {list(index)}")


def _index_select_shape(input, dim, index):
    _check_vector("index_select", index)
    if not input and prod(index) != 1:
        raise ShapeError(f"index_select(): Index to scalar can have only 1 value, got {prod(index)} value(s)")
    return _replaced(input, dim, prod(index))


@primitive(dtype=same, shape=_index_select_shape, out=True)
def index_select(input, dim: Dim, index: Index):
    """The slices of `input` at the positions `index` of dimension `dim`, in that order.

    Args:
        input: any shape.
        dim: the dimension.
        index: int32 or int64 positions from 0, one-dimensional.

    Raises:
        PositionError: a position is negative or not below the size of the dimension.

    >>> import corefw as torch
    >>> torch.index_select(torch.tensor([[1, 2, 3], [4, 5, 6]]), 1, torch.tensor([2, 0]))
    tensor([[3, 1],
            [6, 4]])
    """


@index_select.batching
def index_select_batching(call, examples, input, dim, index):
    if index.shape[0] == 1 and example_dims(input):
        return call(input, dim + 1, index[0])
    _index_select_shape(input.shape[1:], dim, index.shape[1:])
    rows, dim, index = _by_elements(input, dim, index, examples)
    found = rows.gather(dim, index)
    return found if example_dims(input) else found.squeeze(1)


index_select.gradients(
    input=lambda grad, input_shape, dim, index: grad.new_zeros(input_shape).index_add_(dim, index, grad),
)


def _slices_shape(name: str):
    """The shape rule of ops that write the slices of `source` to positions of a dimension."""

    def rule(input, dim, index, source, *attributes):
        _check_vector(name, index)
        count = prod(index)
        given = source if source else (1,) * len(input[:1])
        if given[dim : dim + 1] not in ((), (count,)):
            raise ShapeError(
                f"{name}_(): Number of indices ({count}) should be equal to source.size(dim): ({given[dim]}), "
                f"for dim: {dim}"
            )
        if given != _replaced(input, dim, count) and not (prod(source) == count == 1 and not input):
            raise ShapeError(
                f"{name}_(): source tensor shape must match self tensor shape, excluding the specified dimension. "
                f"Got self.shape = {list(input)} source.shape = {list(source)}"
            )
        return input

    return rule


@primitive(dtype=same, shape=_slices_shape("index_add"), inplace=True, out=True)
def index_add(input, dim: Dim, index: Index, source, *, alpha: Number = 1):
    """`input` with ``alpha * source`` added to the slices at the positions `index` of dimension `dim`; equal positions
    add up.

    Args:
        input: any shape.
        dim: the dimension.
        index: int32 or int64 positions from 0, one-dimensional.
        source: shaped as `input`, but in dimension `dim` as long as `index`.
        alpha: a factor for `source`.

    >>> import corefw as torch
    >>> torch.index_add(torch.zeros(3), 0, torch.tensor([0, 2, 2]), torch.tensor([1.0, 2.0, 3.0]))
    tensor([1., 0., 5.])
    """


@index_add.batching
def index_add_batching(call, examples, input, dim, index, source, alpha):
    if index.shape[0] == 1 and example_dims(input):
        return call(full(input, examples), dim + 1, index[0], _vectors(source, examples), alpha)
    _slices_shape("index_add")(input.shape[1:], dim, index.shape[1:], source.shape[1:])
    rows, dim, index = _by_elements(input, dim, index, examples)
    source = full(source if alpha == 1 else source * alpha, examples).reshape(index.shape)
    return scatter_add(rows, dim, index, source).reshape(examples, *input.shape[1:])


@index_add.gradient("input")
def index_add_vjp_input(grad):
    return grad


@index_add.gradient("source")
def index_add_vjp_source(grad, dim, index, alpha):
    taken = grad.index_select(dim, index)
    return taken if alpha == 1 else taken * alpha


@primitive(dtype=same, shape=_slices_shape("index_copy"), inplace=True, out=True)
def index_copy(input, dim: Dim, index: Index, source):
    """`input` with the slices at the positions `index` of dimension `dim` replaced by those of `source`.

    Args:
        input: any shape.
        dim: the dimension.
        index: int64 positions from 0, one-dimensional.
        source: shaped as `input`, but in dimension `dim` as long as `index`.

    >>> import corefw as torch
    >>> torch.index_copy(torch.zeros(3), 0, torch.tensor([2, 0]), torch.tensor([1.0, 2.0]))
    tensor([2., 0., 1.])
    """


@index_copy.batching
def index_copy_batching(call, examples, input, dim, index, source):
    if index.shape[0] == 1 and example_dims(input):
        return call(full(input, examples), dim + 1, index[0], _vectors(source, examples))
    _slices_shape("index_copy")(input.shape[1:], dim, index.shape[1:], source.shape[1:])
    rows, dim, index = _by_elements(input, dim, index, examples)
    source = full(source, examples).reshape(index.shape)
    return scatter_src(rows, dim, index, source).reshape(examples, *input.shape[1:])


index_copy.gradients(
    input=lambda grad, dim, index: grad.index_fill(dim, index, 0),
    source=lambda grad, dim, index: grad.index_select(dim, index),
)


def _index_fill_shape(input, dim, index, value):
    if len(index) > 1:
        raise PositionError(f"index_fill_(): Index has to be a vector/scalar, but has shape {list(index)}")
    if value:
        raise ShapeError(
            f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {len(value)} dimension(s)."
        )
    return input


@primitive(
    dtype=first,
    shape=_index_fill_shape,
    inplace=True,
    overlapping=("value",),
    grad_name=lambda value: "IndexFill1" if value else "IndexFill",
)
def index_fill(input, dim: Dim, index: Index, value):
    """`input` with `value` in the slices at the positions `index` of dimension `dim`.

    Args:
        input: any shape.
        dim: the dimension.
        index: int64 positions, negative ones counted from the end, one-dimensional.
        value: a number or 0-d tensor, converted to the dtype of `input`.

    >>> import corefw as torch
    >>> torch.index_fill(torch.zeros(3), 0, torch.tensor([0, 2]), 7)
    tensor([7., 0., 7.])
    """


@index_fill.batching
def index_fill_batching(call, examples, input, dim, index, value):
    if index.shape[0] == value.shape[0] == 1 and example_dims(input):
        return call(full(input, examples), dim + 1, index[0], value[0])
    _index_fill_shape(input.shape[1:], dim, index.shape[1:], value.shape[1:])
    rows, dim, index = _by_elements(input, dim, index, examples)
    index = ops.choose(index < 0, index + rows.shape[dim], index)
    values = value.to(input.dtype).reshape(-1, *(1,) * example_dims(rows)).expand(index.shape)
    return scatter_src(rows, dim, index, values).reshape(examples, *input.shape[1:])


@index_fill.gradient("input")
def index_fill_vjp_input(grad, dim, index):
    return grad.index_fill(dim, index, 0)


@index_fill.gradient("value")
def index_fill_vjp_value(grad, dim, index):
    filled = grad.new_zeros(grad.shape, dtype=dtypes.bool_).index_fill_(dim, index, True)
    return grad.masked_fill(~filled, 0)


@composite(out=True)
def index_reduce(input, dim: int, index, source, reduce: str, *, include_self: bool = True):
    """`input` with the slices of `source` combined with those at the positions `index` of dimension `dim`.

    Args:
        input: any shape.
        dim: the dimension.
        index: int32 or int64 positions from 0, one-dimensional.
        source: shaped as `input`, but in dimension `dim` as long as `index`.
        reduce: "prod", "mean", "amax" or "amin".
        include_self: whether the elements of `input` count at the positions written to.

    >>> import corefw as torch
    >>> torch.ones(3).index_reduce(0, torch.tensor([0, 2, 2]), torch.tensor([4.0, 2.0, 3.0]), "prod")
    tensor([4., 1., 6.])
    """
    return scatter_reduce(
        input, dim, _along(input, dim, index, source, reduce), source, reduce, include_self=include_self
    )


@composite(public="Tensor")
def index_reduce_(input, dim: int, index, source, reduce: str, *, include_self: bool = True):
    """In-place form of `index_reduce`.

    >>> import corefw as torch
    >>> torch.ones(2).index_reduce_(0, torch.tensor([1, 1]), torch.tensor([4.0, 2.0]), "amax")
    tensor([1., 4.])
    """
    return input.scatter_reduce_(
        dim, _along(input, dim, index, source, reduce), source, reduce, include_self=include_self
    )


def _along(input, dim: int, index, source, reduce: str) -> Tensor:
    """The positions of slices as positions of all their elements."""
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise CorefwRuntimeError(
            f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}."
        )
    shape = source.array.shape
    dim = canonical_dim(dim, input.array.ndim)
    _slices_shape("index_reduce")(input.array.shape, dim, index.array.shape, shape)
    return index.reshape([-1 if i == dim else 1 for i in range(len(shape))]).expand(shape)


# -- single elements at positions of one dimension --------------------------------------------------------------------
def _gather_shape(input, dim, index):
    if 0 not in index:
        if len(input or (1,)) != len(index or (1,)):
            raise ShapeError(
                "gather(): Index tensor must have the same number of dimensions as input tensor, got index "
                f"{list(index)} and input {list(input)}"
            )
        for i, (n, size) in enumerate(zip(index, input, strict=False)):
            if i != dim and n > size:
                raise ShapeError(
                    f"gather(): Size does not match at dimension {i} expected index {list(index)} to be no larger than "
                    f"self {list(input)} apart from dimension {dim}"
                )
    return index


@primitive(dtype=same, shape=_gather_shape, rewrites=("sparse_grad",), out=True)
def gather(input, dim: Dim, index: Index, *, sparse_grad: bool = False):
    """The elements of `input` at the positions `index` along `dim`: ``out[i, j] = input[i, index[i, j]]`` for `dim` 1.

    Args:
        input: any shape.
        dim: the dimension.
        index: int32 or int64 positions from 0; as many dimensions as `input`, none but `dim` larger.
        sparse_grad: kept for PyTorch's signature; the gradient is dense.

    Returns:
        A tensor shaped as `index`.

    >>> import corefw as torch
    >>> torch.gather(torch.tensor([[1, 2], [3, 4]]), 1, torch.tensor([[0, 0], [1, 0]]))
    tensor([[1, 1],
            [4, 3]])
    """
    return gather(input, dim, index)


@gather.batching
def gather_batching(call, examples, input, dim, index):
    if 0 in index.shape[1:]:
        return input.new_empty((examples, *index.shape[1:]))
    return call(_vectors(input, examples), dim + 1, _vectors(index, examples)).reshape(examples, *index.shape[1:])


gather.gradients(
    input=lambda grad, input_shape, dim, index: grad.new_zeros(input_shape).scatter_add_(dim, index, grad),
)


def _scatter_shape(input, dim, index, src=None, *attributes):
    if 0 in index:
        return input
    for name, shape in (("self", input), ("src", src)):
        if shape is not None and len(shape or (1,)) != len(index or (1,)):
            raise ShapeError(
                f"scatter(): Index tensor must have the same number of dimensions as {name} tensor, got index "
                f"{list(index)} and {name} {list(shape)}"
            )
    fits = all(i == dim or n <= size for i, (n, size) in enumerate(zip(index, input, strict=False)))
    if not fits or (src is not None and any(n > size for n, size in zip(index, src, strict=False))):
        within = "" if src is None else f" and to be no larger size than src {list(src)}"
        raise ShapeError(
            f"scatter(): Expected index {list(index)} to be no larger than self {list(input)} apart from dimension "
            f"{dim}{within}"
        )
    return input


def _trimmed(src: Tensor, index: Tensor) -> Tensor:
    """The part of `src` that `index` covers."""
    shape = index.array.shape
    if shape and not src.array.shape:
        src = src.reshape(1)
    return src if src.array.shape == shape else src[tuple(slice(n) for n in shape)]


def _covering(gradient: Tensor, shape) -> Tensor:
    """The gradient of a tensor of `shape` from that of the part that an index covered."""
    if gradient.array.shape == shape:
        return gradient
    result = gradient.new_zeros(shape)
    _trimmed(result, gradient).copy_(gradient)
    return result


def _from_positions(grad, dim: int, index, shape) -> Tensor:
    """The gradient of a tensor of `shape` whose elements went to the positions `index`, of whatever shape if none."""
    return _covering(grad.gather(dim, index), shape) if index.numel() else grad.new_zeros(shape)


@primitive(dtype=same, shape=_scatter_shape, inplace=True, public="", grad_name="Scatter")
def scatter_src(input, dim: Dim, index: Index, src):
    """`input` with the elements of `src` written to the positions `index` along `dim`."""


@scatter_src.batching
def scatter_batching(call, examples, input, dim, index, *rest):
    if 0 in index.shape[1:]:
        return full(input, examples).clone()
    given = [_vectors(one, examples) if isinstance(one, Tensor) else one for one in rest]
    result = call(_vectors(input, examples), dim + 1, _vectors(index, examples), *given)
    return result.reshape(examples, *input.shape[1:])


scatter_src.gradients(
    input=lambda grad, dim, index: ops.scatter_value(grad, dim, index, 0),
    src=lambda grad, dim, index, src_shape: _from_positions(grad, dim, index, src_shape),
)


@primitive(
    dtype=same,
    shape=lambda input, dim, index, value: _scatter_shape(input, dim, index),
    inplace=True,
    public="",
    grad_name="Scatter1",
)
def scatter_value(input, dim: Dim, index: Index, value: Number):
    """`input` with the number `value` at the positions `index` along `dim`."""


scatter_value.batching(scatter_batching)


scatter_value.gradients(input=lambda grad, dim, index: scatter_value(grad, dim, index, 0))


_ADDING = {"add": "sum", "multiply": "prod"}


@composite(out=True)
def scatter(input, dim: int, index, src=None, *, value: Number | None = None, reduce: str | None = None):
    """`input` with the elements of `src` written to the positions `index` along `dim`.

    For `dim` 1: ``out[i, index[i, j]] = src[i, j]``. Where positions repeat, which element stays is not said.

    Args:
        input: any shape.
        dim: the dimension.
        index: int32 or int64 positions from 0; as many dimensions as `input` and `src`, in none larger than `src`, and
            in none but `dim` larger than `input`.
        src: a tensor, or a number.
        value: the number, by its own keyword.
        reduce: "add" or "multiply" to combine with the elements there instead of replacing them.

    >>> import corefw as torch
    >>> torch.scatter(torch.zeros(2, 3), 1, torch.tensor([[2], [0]]), torch.tensor([[5.0], [6.0]]))
    tensor([[0., 0., 5.],
            [6., 0., 0.]])
    """
    if reduce is not None:
        return scatter_reduce(input, dim, index, *_reduced(input, index, src, value, reduce))
    if isinstance(src, Tensor):
        return scatter_src(input, dim, index, src)
    return scatter_value(input, dim, index, _element(input, src, value))


@composite(public="Tensor")
def scatter_(input, dim: int, index, src=None, *, value: Number | None = None, reduce: str | None = None):
    """In-place form of `scatter`.

    >>> import corefw as torch
    >>> torch.zeros(3).scatter_(0, torch.tensor([1]), 5)
    tensor([0., 5., 0.])
    """
    if reduce is not None:
        return input.scatter_reduce_(dim, index, *_reduced(input, index, src, value, reduce))
    if isinstance(src, Tensor):
        return scatter_src.op.inplace_function(input, dim, index, src)
    return scatter_value.op.inplace_function(input, dim, index, _element(input, src, value))


def _element(input, src, value) -> Number:
    return fitting_number(_number(src, value), input.dispatch_key.dtype)


def _number(src, value) -> Number:
    number = src if value is None else value
    if not isinstance(number, (bool, int, float, complex)):
        raise TypeError(f"scatter(): argument 'src' must be Tensor or Number, not {type(number).__name__}")
    return number


def _reduced(input, index, src, value, reduce: str):
    """The source and the reduction that `scatter_reduce` calls what `scatter` was asked for."""
    if reduce not in _ADDING:
        raise CorefwRuntimeError(f"scatter(): reduce argument must be either add or multiply, got {reduce}")
    if not isinstance(src, Tensor):
        src = input.new_full(index.array.shape, _number(src, value))
    return src, _ADDING[reduce]


@primitive(dtype=same, shape=_scatter_shape, inplace=True, out=True)
def scatter_add(input, dim: Dim, index: Index, src):
    """`input` with the elements of `src` added at the positions `index` along `dim`; equal positions add up.

    For `dim` 1: ``out[i, index[i, j]] += src[i, j]``.

    Args:
        input: any shape.
        dim: the dimension.
        index: int32 or int64 positions from 0; as many dimensions as `input` and `src`, in none larger than `src`, and
            in none but `dim` larger than `input`.
        src: what is added.

    >>> import corefw as torch
    >>> torch.scatter_add(torch.zeros(3), 0, torch.tensor([0, 2, 2]), torch.tensor([1.0, 2.0, 3.0]))
    tensor([1., 0., 5.])
    """


scatter_add.batching(scatter_batching)


scatter_add.gradients(
    input=lambda grad: grad,
    src=lambda grad, dim, index, src_shape: _from_positions(grad, dim, index, src_shape),
)


REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


def _scatter_reduce_shape(input, dim, index, src, reduce, include_self):
    if reduce not in REDUCTIONS:
        raise CorefwRuntimeError(
            f"scatter_reduce(): reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
        )
    return _scatter_shape(input, dim, index, src)


@primitive(dtype=same, shape=_scatter_reduce_shape, inplace=True, out=True)
def scatter_reduce(input, dim: Dim, index: Index, src, reduce: str, *, include_self: bool = True):
    """`input` with the elements of `src` that go to each position `index` along `dim` combined there.

    Args:
        input, dim, index: as for `scatter_add`.
        src: what is combined.
        reduce: "sum", "prod", "mean" (of integers rounded down), "amax" or "amin".
        include_self: whether the elements of `input` count at the positions written to.

    >>> import corefw as torch
    >>> x, index, src = torch.zeros(3), torch.tensor([0, 2, 2]), torch.tensor([1.0, 2.0, 4.0])
    >>> torch.scatter_reduce(x, 0, index, src, "mean", include_self=False)
    tensor([1., 0., 3.])
    """


scatter_reduce.batching(scatter_batching)


@scatter_reduce.gradient("input", "src")
def scatter_reduce_vjp(grad, input, dim, index, src, reduce, include_self, out):
    part = _trimmed(src, index)
    if reduce == "sum":
        to_input, to_src = grad, grad.gather(dim, index)
    elif reduce == "mean":
        count = grad.new_full(grad.shape, int(include_self)).scatter_add(dim, index, grad.new_full(part.shape, 1))
        to_input = grad / count.masked_fill(count == 0, 1)
        to_src = to_input.gather(dim, index)
    elif reduce == "prod":
        to_input, to_src = _product_gradients(grad, input, dim, index, part, include_self, out)
    else:
        # elements that share an extremum share its gradient
        kept = (input == out) if include_self else (input == out).scatter(dim, index, False)
        taken = part == out.gather(dim, index)
        share = grad / kept.to(grad.dtype).scatter_add(dim, index, taken.to(grad.dtype))
        to_input, to_src = share.masked_fill(~kept, 0), share.gather(dim, index).masked_fill(~taken, 0)
    if not include_self:
        to_input = to_input.scatter(dim, index, 0)
    return to_input, _covering(to_src, src.array.shape)


def _product_gradients(grad, input, dim, index, src, include_self, out):
    """Gradients of products: the product of the other factors, also where a single factor is zero."""
    nonzero_input = input.masked_fill(input == 0, 1)
    to_input = grad * nonzero_input.scatter_reduce(dim, index, src, "prod", include_self=include_self) / nonzero_input
    zero = src == 0
    zeros = grad.new_zeros(input.array.shape).scatter_add(dim, index, zero.to(grad.dtype)).gather(dim, index)
    single = zero & (zeros == 1)
    others = input.scatter_reduce(dim, index, src.masked_fill(single, 1), "prod", include_self=include_self)
    quotient = (grad * out).gather(dim, index) / src.masked_fill(zero, 1)
    return to_input, ops.choose(single, (grad * others).gather(dim, index), quotient)


@composite(out=True)
def take_along_dim(input, indices, dim: int | None = None):
    """The elements of `input` at the positions `indices` along `dim`, as `gather`, with the other dimensions broadcast.

    Args:
        input: any shape.
        indices: int64 positions, negative ones counted from the end, e.g. from argmax(keepdim=True) or argsort; as many
            dimensions as `input`.
        dim: the dimension; if missing, both are flattened first.

    >>> import corefw as torch
    >>> torch.take_along_dim(torch.tensor([[1, 2], [3, 4]]), torch.tensor([[1], [0]]), dim=1)
    tensor([[2],
            [3]])
    """
    if indices.dispatch_key.dtype is not dtypes.int64:
        raise DtypeError(
            f"torch.take_along_dim(): dtype of indices should be Long but got {indices.dispatch_key.dtype.title}"
        )
    if dim is None:
        input, indices, dim = input.reshape(-1), indices.reshape(-1), 0
    shape, wanted = input.array.shape, indices.array.shape
    if len(shape) != len(wanted):
        raise ShapeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{len(shape)} dimensions for input, and {len(wanted)} dimensions for indices"
        )
    dim = canonical_dim(dim, len(shape))
    common = broadcast(_replaced(shape, dim, 1), _replaced(wanted, dim, 1))
    if shape:
        input = input.expand(_replaced(common, dim, shape[dim]))
        indices = indices.expand(_replaced(common, dim, wanted[dim]))
        indices = ops.choose(indices < 0, indices + shape[dim], indices)
    return input.gather(dim, indices)


# -- positions in the flattened tensor --------------------------------------------------------------------------------
@primitive(dtype=same, shape=lambda input, index: index, out=True)
def take(input, index: Index):
    """The elements of `input`, flattened, at the positions `index`.

    Args:
        input: any shape.
        index: int64 positions, negative ones counted from the end.

    Returns:
        A tensor shaped as `index`.

    >>> import corefw as torch
    >>> torch.take(torch.tensor([[1, 2], [3, 4]]), torch.tensor([0, 3]))
    tensor([1, 4])
    """


@take.batching
def take_batching(call, examples, input, index):
    if input.shape[0] == 1:
        return call(input[0], index)
    rows, places = _flat(input, index, examples)
    return rows.gather(1, places).reshape(examples, *index.shape[1:])


take.gradients(input=lambda grad, input_shape, index: grad.new_zeros(input_shape).put_(index, grad, True))


def _put_shape(input, index, source, accumulate):
    if prod(index) != prod(source):
        raise ShapeError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{prod(source)}, index.numel() = {prod(index)}"
        )
    return input


@primitive(dtype=same, shape=_put_shape, inplace=True)
def put(input, index: Index, source, accumulate: bool = False):
    """`input` with the elements of `source` at the positions `index` of the flattened tensor.

    Args:
        input: any shape.
        index: int64 positions, negative ones counted from the end.
        source: as many elements as `index`.
        accumulate: whether they are added to those there (equal positions add up) instead of replacing them.

    >>> import corefw as torch
    >>> torch.put(torch.zeros(2, 2), torch.tensor([0, 3]), torch.tensor([5.0, 6.0]))
    tensor([[5., 0.],
            [0., 6.]])
    """


@put.batching
def put_batching(call, examples, input, index, source, accumulate):
    _put_shape(input.shape[1:], index.shape[1:], source.shape[1:], accumulate)
    rows, places = _flat(input, index, examples)
    write = scatter_add if accumulate else scatter_src
    return write(rows, 1, places, full(source, examples).reshape(examples, -1)).reshape(examples, *input.shape[1:])


put.gradients(
    input=lambda grad, index, accumulate: grad if accumulate else grad.put(index, grad.new_zeros(index.array.shape)),
    source=lambda grad, index, source_shape: grad.take(index).reshape(source_shape),
)
