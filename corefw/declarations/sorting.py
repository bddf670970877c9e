"""Order, distinct values and membership: sort, topk, unique, searchsorted and their kin."""

from __future__ import annotations

from typing import Any, Literal, overload

from corefw.declarations._shared.batching import along, example_dims, full
from corefw.dispatch.batching.calls import one_by_one
from corefw.dispatch.declare import Dim, composite, ops, primitive
from corefw.dispatch.rules import boolean, index, picks, promoted_real_numbers, same
from corefw.errors import ShapeError
from corefw.shapes import Shape, canonical_dim, same_shape, values_and_indices
from corefw.tensor import Tensor


# -- order ------------------------------------------------------------------------------------------------------------
@primitive(
    name="sort",
    dtype=picks,
    shape=values_and_indices,
    outputs=("values", "indices"),
    rewrites=("stable",),
    out=True,
)
def sort(input, dim: Dim = -1, descending: bool = False, *, stable: bool = False):
    """The elements in order along `dim`, and the positions where they were. NaN counts as largest.

    Args:
        input: any shape.
        dim: the dimension to sort along.
        descending: the largest first.
        stable: keep equal elements in the order in which they came; here they always are.

    >>> import corefw as torch
    >>> torch.tensor([3, 1, 2]).sort(descending=True).indices
    tensor([0, 2, 1])
    """
    return input.sort(dim, descending)


sort.batching(along(0))
sort.gradients(input=lambda grad, indices, dim, input_shape: ops.select_backward(grad, dim, indices, True, input_shape))


@composite(other_names=True)
def argsort(input, dim: int = -1, descending: bool = False, *, stable: bool = False):
    """The positions of the elements in order along `dim`. Arguments as for `sort`.

    >>> import corefw as torch
    >>> torch.tensor([3, 1, 2]).argsort()
    tensor([1, 2, 0])
    """
    return ops.sort(input.detach(), dim, descending).indices


@composite(out=True)
def msort(input):
    """The elements in ascending order along the first dimension.

    >>> import corefw as torch
    >>> torch.tensor([3, 1, 2]).msort()
    tensor([1, 2, 3])
    """
    return ops.sort(input, 0).values


def _topk_shape(input: Shape, k: int, dim: int, *attributes) -> tuple[Shape, Shape]:
    if not (0 if input else 1) <= k <= (input[dim] if input else 1):
        raise ShapeError(f"selected index k out of range: {k} of {input[dim] if input else 1} elements")
    result = (*input[:dim], k, *input[dim + 1 :]) if input else ()
    return result, result


@primitive(
    dtype=picks.without("bool", "complex"),
    shape=_topk_shape,
    outputs=("values", "indices"),
    out=True,
)
def topk(input, k: int, dim: Dim = -1, largest: bool = True, sorted: bool = True):
    """The `k` largest, or smallest, elements along `dim` and their positions. NaN counts as largest.

    Args:
        input: any shape.
        k: how many.
        dim: the dimension to choose along.
        largest: the largest rather than the smallest.
        sorted: in order, the extreme one first; here they always are.

    Raises:
        RuntimeError: if there are fewer than `k` elements.

    >>> import corefw as torch
    >>> torch.tensor([3.0, 1.0, 2.0]).topk(2).values
    tensor([3., 2.])
    """


topk.batching(along(1))
topk.gradients(input=lambda grad, indices, dim, input_shape: ops.select_backward(grad, dim, indices, True, input_shape))


# -- distinct values --------------------------------------------------------------------------------------------------
@primitive(
    dtype=same.giving(same, index, index),
    shape=None,
    outputs=("output", "inverse_indices", "counts"),
    result_name="unique",
    public="",
)
def unique_values(input, dim: int | None, consecutive: bool):
    """Distinct elements (or slices along `dim`), the position of each one's like among them, how often each occurs.

    In ascending order; with `consecutive` in the order of the input, where only neighbours are compared.
    """


def _unique(input, dim, consecutive: bool, return_inverse: bool, return_counts: bool):
    if dim is not None:
        dim = canonical_dim(dim, input.ndim)
    output, inverse, counts = ops.unique_values(input.detach(), dim, consecutive)
    if not (return_inverse or return_counts):
        return output
    return (output, *((inverse,) if return_inverse else ()), *((counts,) if return_counts else ()))


@overload
def unique(
    input,
    sorted: bool = True,
    return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False,
    dim: int | None = None,
) -> Tensor: ...
@overload
def unique(
    input, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any: ...
@composite()
def unique(
    input, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
):
    """The distinct elements in ascending order, or the distinct slices along `dim`. No NaN equals another.

    Args:
        input: any shape.
        sorted: in order; here they always are.
        return_inverse: also give, for each element, the position of its like in the result.
        return_counts: also give how often each occurs.
        dim: compare slices along this dimension; None for elements.

    Returns:
        The distinct elements, or a tuple of them and what else was asked for.

    >>> import corefw as torch
    >>> torch.tensor([2, 1, 2]).unique(return_counts=True)
    (tensor([1, 2]), tensor([1, 2]))
    """
    return _unique(input, dim, False, return_inverse, return_counts)


@overload
def unique_consecutive(
    input, return_inverse: Literal[False] = False, return_counts: Literal[False] = False, dim: int | None = None
) -> Tensor: ...
@overload
def unique_consecutive(
    input, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any: ...
@composite()
def unique_consecutive(input, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None):
    """The elements, or slices along `dim`, that differ from the one before. Arguments and results as for `unique`.

    >>> import corefw as torch
    >>> torch.tensor([1, 1, 2, 1]).unique_consecutive()
    tensor([1, 2, 1])
    """
    return _unique(input, dim, True, return_inverse, return_counts)


# -- search and membership --------------------------------------------------------------------------------------------
def _search_shape(sequence: Shape, input: Shape, right: bool) -> Shape:
    if len(sequence) > 1 and sequence[:-1] != input[:-1]:
        raise ShapeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
            f"tensor and input value tensor must match, but we got boundaries tensor {list(sequence)} and input value "
            f"tensor {list(input)}"
        )
    if not sequence:
        raise ShapeError("torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension")
    return input


@primitive(dtype=promoted_real_numbers.rounding().giving(index), shape=_search_shape, public="")
def search(sequence, input, right: bool):
    """Where to insert `input` into the sorted last dimension of `sequence`: before equal elements, or after them."""


@search.batching
def search_batching(call, examples, sequence, input, right):
    if sequence.shape[0] == 1 and example_dims(sequence) == 1:
        return call(sequence[0], input, right)
    _search_shape(sequence.shape[1:], input.shape[1:], right)
    sequence, input = full(sequence, examples), full(input, examples)
    if example_dims(sequence) > 1:
        return call(sequence, input, right)
    return call(sequence, input.reshape(examples, -1), right).reshape(input.shape)


@composite(out=True)
def searchsorted(
    sorted_sequence, input, *, out_int32: bool = False, right: bool = False, side: str | None = None, sorter=None
):
    """Where to insert each value of `input` so that the last dimension of `sorted_sequence` stays in order.

    Args:
        sorted_sequence: 1-d, or of the same leading shape as `input`; ascending along the last dimension.
        input: the values; a tensor or a number.
        out_int32: int32 positions rather than int64.
        right: after equal elements rather than before them.
        side: "left" or "right", in place of `right`.
        sorter: positions that put an unsorted `sorted_sequence` into order.

    >>> import corefw as torch
    >>> torch.searchsorted(torch.tensor([1, 3, 5]), torch.tensor([3, 6]))
    tensor([1, 3])
    """
    if side not in (None, "left", "right"):
        raise ShapeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise ShapeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        )
    if sorter is not None:
        sorted_sequence = sorted_sequence.gather(-1, sorter)
    if not isinstance(input, Tensor):
        input = sorted_sequence.new_full((), input)
    result = ops.search(sorted_sequence.detach(), input.detach(), right or side == "right")
    return result.int() if out_int32 else result


@composite(public="corefw", out=True)
def bucketize(input, boundaries, *, out_int32: bool = False, right: bool = False):
    """The number of the interval between the sorted 1-d `boundaries` that each value of `input` falls into.

    With `right`, an interval includes its left end rather than its right one.

    >>> import corefw as torch
    >>> torch.bucketize(torch.tensor([3, 6, 9]), torch.tensor([1, 3, 5, 7, 9]))
    tensor([1, 3, 4])
    """
    if boundaries.ndim != 1:
        raise ShapeError(f"bucketize: boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    return ops.searchsorted(boundaries, input, out_int32=out_int32, right=right)


@primitive(dtype=boolean, shape=same_shape, out=True)
def isin(elements, test_elements, *, assume_unique: bool = False, invert: bool = False):
    """Which of `elements` are among `test_elements`; either may be a number.

    Args:
        elements: any shape, the result's.
        test_elements: any shape.
        assume_unique: says that neither holds a value twice, which may be faster.
        invert: which are not among them.

    >>> import corefw as torch
    >>> torch.isin(torch.tensor([1, 2, 3]), torch.tensor([2, 5]))
    tensor([False,  True, False])
    """


@isin.batching
def isin_batching(call, examples, elements, test_elements, assume_unique, invert):
    if test_elements.shape[0] == 1 or not test_elements.numel():
        return call(elements, test_elements[:1], assume_unique, invert)
    if not search.op.rule.accepts(test_elements.dtype):
        return one_by_one(call, examples, elements, test_elements, assume_unique, invert)
    ordered, rows = (one.reshape(one.shape[0], -1) for one in (test_elements, full(elements, examples)))
    ordered = ordered.sort(1).values
    place = ops.search(ordered, rows, False).clamp_max(ordered.shape[1] - 1)
    found = (ordered.gather(1, place) == rows).reshape(examples, *elements.shape[1:])
    return found.logical_not() if invert else found
