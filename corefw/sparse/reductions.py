"""Sums and softmax of sparse tensors."""

from __future__ import annotations

from corefw.dispatch.declare import ops
from corefw.dispatch.sparse.calls import refusal, rule
from corefw.dispatch.sparse.patterns import Pattern, coo, coordinates, flattened
from corefw.dispatch.sparse.tensors import added, is_sparse, sparse, values_of
from corefw.errors import LayoutError
from corefw.shapes import canonical_dim
from corefw.sparse.forms import coalesce, elementwise
from corefw.tensor import Tensor


@rule("sum")
def _total(input, dim=None, keepdim=False, dtype=None):
    if keepdim:
        raise refusal("sum", (input,), " with keepdim=True")
    return sum(input, () if dim is None else dim, dtype)


def sum(input: Tensor, dim=None, dtype=None) -> Tensor:
    """The sum of a sparse tensor over all or some dimensions: dense if no sparse dimension is left, sparse otherwise.

    Args:
        input: a sparse tensor.
        dim: a dimension or several; all if None.
        dtype: that of the result; that of `input` if None.

    >>> import corefw as torch
    >>> a = torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
    >>> torch.sparse.sum(a), torch.sparse.sum(a, 0).to_dense()
    (tensor(12.), tensor([4., 0., 8.]))
    """
    if not is_sparse(input):
        raise LayoutError("sparse.sum: expected a sparse tensor: use sum, or make one by .to_sparse()")
    input = elementwise(input)
    pattern, values = input.array.pattern, values_of(input)
    if dtype is not None:
        values = values.to(dtype)
    dims = [dim] if isinstance(dim, int) else list(dim or range(input.ndim))
    gone = {canonical_dim(d, input.ndim) for d in dims}
    count = len(pattern.shape)
    kept = [d for d in range(count) if d not in gone]
    inner = [d - count + 1 for d in gone if d >= count]
    if inner:
        values = values.sum(inner)
    if not kept:
        return values.sum(0)
    if len(kept) == count:
        return sparse(pattern, values)
    made = coo(coordinates(pattern)[kept], tuple(pattern.shape[d] for d in kept))
    return coalesce(sparse(made, values))


def _groups(pattern: Pattern, dim: int) -> tuple[Tensor, int]:
    """Which values differ in their position in `dim` only: the number of its group for each, and how many there are."""
    kept = [d for d in range(len(pattern.shape)) if d != dim]
    places = flattened(coordinates(pattern)[kept], tuple(pattern.shape[d] for d in kept))
    found, group = places.unique(return_inverse=True)
    return group, found.shape[0]


def _softmax(name: str, input: Tensor, dim: int, dtype, is_log: bool) -> Tensor:
    if not is_sparse(input):
        raise LayoutError(f"{name}: expected a sparse tensor: use softmax, or make one by .to_sparse()")
    input = coalesce(elementwise(input))
    dim = canonical_dim(dim, input.ndim)
    pattern, values = input.array.pattern, values_of(input)
    if dtype is not None:
        values = values.to(dtype)
    if dim >= len(pattern.shape):
        dense = ops.log_softmax if is_log else ops.softmax
        return sparse(pattern, dense(values, dim - len(pattern.shape) + 1))
    if not pattern.count:
        return input
    group, count = _groups(pattern, dim)
    least = ops.full((count, *values.shape[1:]), -float("inf"), dtype=values.dtype, device=values.device)
    greatest = least.index_reduce(0, group, values.detach(), "amax")
    moved = values - greatest.index_select(0, group)
    total = added(moved.exp(), group, count)
    if is_log:
        return sparse(pattern, moved - total.log().index_select(0, group))
    return sparse(pattern, moved.exp() / total.index_select(0, group))


@rule("softmax")
def _softmax_rule(input, dim, dtype=None):
    return _softmax("softmax", input, dim, dtype, False)


@rule("log_softmax")
def _log_softmax_rule(input, dim, dtype=None):
    return _softmax("log_softmax", input, dim, dtype, True)


def softmax(input: Tensor, dim: int, *, dtype=None) -> Tensor:
    """Softmax over the entries of a sparse tensor along `dim`: what has no entry counts as minus infinity.

    >>> import corefw as torch
    >>> a = torch.sparse_coo_tensor([[0, 0, 1], [0, 2, 1]], [1.0, 1.0, 5.0], (2, 3))
    >>> torch.sparse.softmax(a, 1).to_dense()
    tensor([[0.5000, 0.0000, 0.5000],
            [0.0000, 1.0000, 0.0000]])
    """
    return _softmax("sparse.softmax", input, dim, dtype, False)


def log_softmax(input: Tensor, dim: int, *, dtype=None) -> Tensor:
    """The logarithm of `softmax` over the entries of a sparse tensor along `dim`.

    >>> import corefw as torch
    >>> a = torch.sparse_coo_tensor([[0, 1], [0, 1]], [1.0, 5.0], (2, 3))
    >>> torch.sparse.log_softmax(a, 1).values()
    tensor([0., 0.])
    """
    return _softmax("sparse.log_softmax", input, dim, dtype, True)
