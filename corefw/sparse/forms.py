"""One sparse tensor in another form: coalesced, in another layout, dense."""

from __future__ import annotations

from corefw.dispatch.declare import ops
from corefw.dispatch.sparse.patterns import Pattern, coalesced, compressed, coo, coordinates, flat
from corefw.dispatch.sparse.tensors import added, at_pattern, is_sparse, sparse, values_of
from corefw.errors import LayoutError, ShapeError
from corefw.layouts import layout, sparse_coo, sparse_csr, strided
from corefw.tensor import Tensor


def coalesce(input: Tensor) -> Tensor:
    """The sparse tensor with its positions in order and each of them once; the values at one place are added."""
    pattern = input.array.pattern
    if pattern.coalesced:
        return input
    unique, inverse = coalesced(pattern)
    return sparse(unique, added(values_of(input), inverse, unique.count), "CoalesceBackward0")


def to_dense(input: Tensor) -> Tensor:
    """The dense tensor of a sparse one."""
    pattern, values = input.array.pattern, values_of(input)
    count = 1
    for size in pattern.shape:
        count *= size
    return added(values, flat(pattern), count).reshape(tuple(input.array.shape))


def to_coo(input: Tensor) -> Tensor:
    """A sparse tensor as one of coordinates."""
    pattern = input.array.pattern
    if pattern.layout is sparse_coo:
        return input
    return sparse(pattern.kept(_as_coo), values_of(input), "ToSparseBackward0")


def _as_coo(pattern: Pattern) -> Pattern:
    return coo(coordinates(pattern), pattern.shape, True)


def _as_csr(pattern: Pattern) -> Pattern:
    crow, col, _ = compressed(pattern)
    return Pattern(sparse_csr, (crow, col), pattern.shape, True)


def to_csr(input: Tensor) -> Tensor:
    """A sparse matrix in compressed rows."""
    if input.array.pattern.layout is sparse_csr:
        return input
    if len(input.array.pattern.shape) != 2 or input.ndim != 2:
        raise ShapeError(f"to_sparse_csr: expected a matrix without dense dimensions, got shape {list(input.shape)}")
    input = coalesce(input)
    return sparse(input.array.pattern.kept(_as_csr), values_of(input), "ToSparseCsrBackward0")


def to_layout(input: Tensor, wanted: layout | None) -> Tensor:
    """A sparse tensor in another layout; None is that of coordinates."""
    if wanted in (sparse_coo, None):
        return to_coo(input)
    if wanted is sparse_csr:
        return to_csr(input)
    if wanted is strided:
        return to_dense(input)
    raise LayoutError(f"layout {wanted} is not supported: use sparse_coo or sparse_csr")


def from_dense(input: Tensor, sparse_dim: int | None = None) -> Tensor:
    """The elements of a dense tensor that are not zero, as a tensor of coordinates in its first dimensions."""
    count = input.ndim if sparse_dim is None else sparse_dim
    if not 0 <= count <= input.ndim or (count == 0 and input.ndim):
        raise ShapeError(f"to_sparse: sparse_dim argument must be in [1, {input.ndim}], but got {sparse_dim}")
    is_there = input.detach() != 0
    if count < input.ndim:
        is_there = is_there.flatten(count).any(-1)
    pattern = coo(is_there.nonzero().t().contiguous(), tuple(input.shape[:count]), True)
    return sparse(pattern, at_pattern(input, pattern), "ToSparseBackward0")


def masked(input: Tensor, mask: Tensor) -> Tensor:
    """The elements of a tensor at the positions of a sparse one."""
    if not is_sparse(mask):
        raise LayoutError("sparse_mask: expected a sparse mask: make one by .to_sparse()")
    if tuple(input.shape) != tuple(mask.shape):
        raise ShapeError(f"sparse_mask: shapes {list(input.shape)} and {list(mask.shape)} differ")
    return sparse(mask.array.pattern, at_pattern(input, mask.array.pattern), "SparseMaskBackward0")


def empty_like(input: Tensor) -> Tensor:
    """A tensor of coordinates without entries, otherwise as a sparse one."""
    pattern = input.array.pattern
    indices = coordinates(pattern)[:, :0]
    return sparse(coo(indices, pattern.shape, True), ops.zeros_like(input.array.values[:0]))
