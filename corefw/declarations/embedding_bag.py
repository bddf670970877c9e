"""Bags of embeddings: rows of a table picked by positions, and reduced bag by bag."""

from __future__ import annotations

from corefw import dtypes
from corefw.declarations._shared.factories import ArgumentError
from corefw.dispatch.batching.tensors import all_examples
from corefw.dispatch.declare import Index, composite, ops
from corefw.dispatch.sparse.tensors import rows_of
from corefw.errors import DtypeError, KernelNotFoundError, ShapeError
from corefw.tensor import Tensor
from corefw.tracebacks import warn

_MODES = ("sum", "mean", "max")
_NO_ROW = -1  # that is padding


class BagError(ArgumentError, ValueError):
    """Tensors that are no bags: PyTorch raises either class, by which of its functions is called."""


# -- what is given ----------------------------------------------------------------------------------------------------
def _check_tensors(weight, indices, per_sample_weights, mode: str) -> None:
    if mode not in _MODES:
        raise ValueError(f"mode has to be one of sum, mean or max, but got {mode!r}")
    if weight.ndim != 2:
        raise BagError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.ndim}")
    if not weight.dispatch_key.dtype.is_floating_point:
        raise DtypeError(f"embedding_bag: expected weight to be floating, but got {weight.dispatch_key.dtype.title}")
    if indices.dispatch_key.dtype not in (dtypes.int64, dtypes.int32):
        raise DtypeError(
            f"Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"{indices.dispatch_key.dtype.title} instead (while checking arguments for embedding_bag)"
        )
    if per_sample_weights is None:
        return
    if mode != "sum":
        raise KernelNotFoundError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got "
            f"mode='{mode}')."
        )
    if per_sample_weights.shape != indices.shape:
        raise BagError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have "
            f"the same shape as the input ({indices.shape})"
        )
    if per_sample_weights.dispatch_key.dtype is not weight.dispatch_key.dtype:
        raise DtypeError(
            f"embedding_bag: expected per_sample_weights of weight's dtype {weight.dispatch_key.dtype.title}, but got "
            f"{per_sample_weights.dispatch_key.dtype.title}"
        )


def _padding_row(padding_idx: int | None, count: int) -> int:
    """The row that is left out, counted from the beginning."""
    if padding_idx is None:
        return _NO_ROW
    if not -count <= padding_idx < count:
        raise ArgumentError(
            f"padding_idx must be within the number of embeddings, -{count} through {count - 1}, but got {padding_idx}"
        )
    return padding_idx % count


def _check_offsets(offsets, count: int, include_last_offset: bool) -> None:
    """Refuse bags that do not follow each other from the first of `count` positions on."""
    if offsets.ndim != 1:
        raise BagError(f"offsets has to be a 1D Tensor, but got {offsets.ndim} dimensions")
    if offsets.dispatch_key.dtype not in (dtypes.int64, dtypes.int32):
        raise DtypeError(
            f"embedding_bag: expected offsets of int64 or int32, but got {offsets.dispatch_key.dtype.title}"
        )
    if not offsets.shape[0]:
        if include_last_offset:
            raise ShapeError("include_last_offset: number of offset should be at least 1")
        return
    ordered = (offsets[1:] >= offsets[:-1]).all()
    if not all_examples(ordered.logical_and(offsets[0] == 0).logical_and(offsets[-1] <= count)).all():
        raise ArgumentError(
            f"embedding_bag: offsets[0] has to be 0, offsets[-1] can not be greater than input's length {count}, and "
            f"no offset is less than the one before; got {all_examples(offsets).tolist()}"
        )


# -- what is reduced --------------------------------------------------------------------------------------------------
def _rows(weight, indices, padding: int, scale_grad_by_freq: bool, per_sample_weights, counted):
    """The picked rows times their weights, 0 where one does not count."""
    rows = ops.pick_rows(weight, indices, padding, scale_grad_by_freq)
    rows = rows if per_sample_weights is None else rows * per_sample_weights.unsqueeze(-1)
    return rows if counted is None else rows.masked_fill(counted.logical_not().unsqueeze(-1), 0)


def _mean(total, sizes):
    """A bag without rows has a mean of 0."""
    return total / sizes.clamp_min(1).to(total.dtype).unsqueeze(-1)


def _greatest(weight, indices, padding: int, counted) -> tuple:
    """The greatest elements of each row of bags, and the rows of the table that they are of; 0 of a bag without any."""
    if not indices.shape[1]:
        nothing = ops.pick_rows(weight, indices, padding).sum(1)
        return nothing, ops.zeros_like(nothing, dtype=dtypes.int64)
    indices = indices.to(dtypes.int64).masked_fill(counted.logical_not(), 0)
    rows = ops.pick_rows(weight, indices, padding).masked_fill(counted.logical_not().unsqueeze(-1), float("-inf"))
    values, places = rows.max(1)
    empty = counted.any(1).logical_not().unsqueeze(-1)
    return values.masked_fill(empty, 0), indices.gather(1, places).masked_fill(empty, 0)


def _of_rows(weight, indices, mode: str, padding: int, scale_grad_by_freq: bool, per_sample_weights):
    """Bags that are the rows of `indices`."""
    if mode == "max":
        return _greatest(weight, indices, padding, indices != padding)[0]
    counted = None if padding == _NO_ROW else indices != padding
    total = _rows(weight, indices, padding, scale_grad_by_freq, per_sample_weights, counted).sum(1)
    return total if mode == "sum" else _mean(total, (indices != padding).sum(1))


def _of_segments(
    weight, indices, offsets, mode: str, padding: int, scale_grad_by_freq: bool, per_sample_weights, ended: bool
) -> tuple:
    """Bags that follow each other: the results, their rows in the table for "max", the bag of each position, and how
    many rows count in each bag.

    Args:
        ended: whether the last of the offsets is the end of the last bag, not the begin of another.
    """
    count, bags = indices.shape[0], offsets.shape[0] - ended
    place = ops.arange(count, device=indices.device)
    begins = offsets.narrow(0, 0, bags).to(dtypes.int64)
    bag = ops.searchsorted(begins, place, right=True) - 1
    counted = indices != padding
    if ended:
        counted = counted.logical_and(place < offsets[-1])
    if not bags:
        nothing = ops.pick_rows(weight, indices.narrow(0, 0, 0), padding)
        return nothing, ops.zeros_like(nothing, dtype=dtypes.int64), bag, bag.new_zeros((0,))
    sizes = bag.new_zeros((bags,)).index_add(0, bag, counted.to(dtypes.int64))
    if mode == "max":
        held = bag.new_zeros((bags,)).index_add(0, bag, ops.ones_like(bag))
        column = ops.arange(int(all_examples(held).max()), device=indices.device)
        taken = (begins.unsqueeze(1) + column).clamp_max(max(count - 1, 0))
        present = (column < held.unsqueeze(1)).logical_and(counted[taken])
        return *_greatest(weight, indices[taken], padding, present), bag, sizes
    masked = counted if ended or padding != _NO_ROW else None
    rows = _rows(weight, indices, padding, scale_grad_by_freq, per_sample_weights, masked)
    total = weight.new_zeros((bags, weight.shape[1])).index_add(0, bag, rows)
    return total if mode == "sum" else _mean(total, sizes), None, bag, sizes


def _picked(weight, indices, padding: int, scale_grad_by_freq: bool) -> tuple:
    """The rows that are picked as a table of their own, whose gradient is a sparse one of `weight`, the positions in
    it, and which of its rows is padding."""
    if scale_grad_by_freq:
        raise BagError("embedding_bag: scale_grad_by_freq not supported with sparse gradients")
    rows = indices.flatten().to(dtypes.int64)
    positions, first = ops.arange(rows.shape[0], device=rows.device), _NO_ROW
    if padding != _NO_ROW:
        is_padding = rows == padding
        found = is_padding.nonzero()
        if found.shape[0]:
            first = int(found[0, 0])
            positions = positions.masked_fill(is_padding, first)
    return rows_of(weight, rows), positions.reshape(indices.shape), first


# -- functions --------------------------------------------------------------------------------------------------------
@composite(public="nn.functional")
def embedding_bag(
    input: Index, weight, offsets: Index | None = None, max_norm: float | None = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, per_sample_weights=None,
    include_last_offset: bool = False, padding_idx: int | None = None,
):  # fmt: skip
    """The sums, means or greatest elements of bags of rows of `weight`.

    Args:
        input: positions from 0 to V - 1, of dtype int64 or int32: shape (B, N), a bag in each row, or (N,), one bag
            behind the other.
        weight: the table, shape (V, D).
        offsets: where each bag begins, shape (B,), if they stand one behind the other.
        max_norm: if given, picked rows of larger norm are first scaled down to it, in place.
        norm_type: the order of that norm.
        scale_grad_by_freq: whether the gradient of a row is divided by how often it was picked; not for "max".
        mode: "sum", "mean" or "max". A bag without rows gives 0.
        sparse: whether the gradient of the table is a sparse tensor, which has only the rows that were picked; not for
            "max".
        per_sample_weights: factors of the rows, of the input's shape, for "sum".
        include_last_offset: whether `offsets` has one more element, where the last bag ends.
        padding_idx: a row that counts nowhere and gets no gradient.

    Returns:
        shape (B, D).

    >>> import corefw as torch
    >>> table = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> torch.nn.functional.embedding_bag(torch.tensor([0, 1, 2]), table, torch.tensor([0, 2]), mode="sum")
    tensor([[4., 6.],
            [5., 6.]])
    """
    if weight.dispatch_key.dtype is dtypes.int64 and input.dispatch_key.dtype.is_floating_point:
        warn("embedding_bag(weight, input, ...) is deprecated: the arguments are embedding_bag(input, weight, ...)")
        weight, input = input, weight
    _check_tensors(weight, input, per_sample_weights, mode)
    if mode == "max" and (scale_grad_by_freq or sparse):
        raise ValueError("max mode does not support scaling the gradient by the frequency, or sparse weights")
    if input.ndim not in (1, 2):
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.ndim}")
    if input.ndim == 2 and offsets is not None:
        raise ValueError("if input is 2D, then offsets has to be None: its rows are the bags")
    if input.ndim == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        _check_offsets(offsets, input.shape[0], include_last_offset)
    padding = _padding_row(padding_idx, weight.shape[0])
    if max_norm is not None:
        ops.embedding_renorm_(weight, input, max_norm, norm_type)
    if sparse:
        weight, input, padding = _picked(weight, input, padding, scale_grad_by_freq)
    options = (mode, padding, scale_grad_by_freq, per_sample_weights)
    if input.ndim == 2:
        return _of_rows(weight, input, *options)
    return _of_segments(weight, input, offsets, *options, include_last_offset)[0]


@composite(name="coded_embedding_bag", public="corefw.embedding_bag")
def _coded_embedding_bag(
    weight, indices: Index, offsets: Index, scale_grad_by_freq: bool = False, mode: int = 0, sparse: bool = False,
    per_sample_weights=None, include_last_offset: bool = False, padding_idx: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """`corefw.nn.functional.embedding_bag` of bags one behind the other, and what it found.

    Args:
        mode: 0 for "sum", 1 for "mean" and 2 for "max".

    Other arguments as there. Returns the results, the bag of each position, how many rows count in each bag, and for
    "max" the rows of the table that the elements of the results are of; else zeros.

    >>> import corefw as torch
    >>> table = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> torch.embedding_bag(table, torch.tensor([0, 1, 1]), torch.tensor([0, 2]), mode=2)
    (tensor([[3., 4.],
            [3., 4.]]), tensor([0, 0, 1]), tensor([2, 1]), tensor([[1, 1],
            [1, 1]]))
    """
    if mode not in (0, 1, 2):
        raise ValueError(f"embedding_bag: expected mode to be 0 (sum), 1 (mean) or 2 (max), but got {mode}")
    _check_tensors(weight, indices, per_sample_weights, _MODES[mode])
    if indices.ndim != 1:
        raise ShapeError(f"embedding_bag: input has to be a 1D Tensor, but got Tensor of dimension {indices.ndim}")
    _check_offsets(offsets, indices.shape[0], include_last_offset)
    padding = _padding_row(padding_idx, weight.shape[0])
    if sparse:
        if mode == 2:
            raise ValueError("embedding_bag: mode 2 (max) does not support sparse weights")
        weight, indices, padding = _picked(weight, indices, padding, scale_grad_by_freq)
    options = (_MODES[mode], padding, scale_grad_by_freq, per_sample_weights)
    result, greatest, bag, sizes = _of_segments(weight, indices, offsets, *options, include_last_offset)
    return result, bag, sizes, ops.zeros_like(sizes) if greatest is None else greatest
