"""One sparse tensor in another form: coalesced, in another layout, dense."""

from __future__ import annotations

from collections.abc import Sequence

from corefw.dispatch.declare import ops
from corefw.dispatch.sparse.patterns import Pattern, coalesced, compressed, coo, coordinates, flat
from corefw.dispatch.sparse.tensors import added, at_pattern, elements_of, is_sparse, sparse, values_of
from corefw.errors import LayoutError, ShapeError
from corefw.layouts import BLOCKED, BY_COLUMNS, COMPRESSED, layout, sparse_coo, sparse_csc, sparse_csr, strided
from corefw.tensor import Tensor


def coalesce(input: Tensor) -> Tensor:
    """The sparse tensor with each of its positions once, those of coordinates in order; the values at one place are
    added."""
    pattern = input.array.pattern
    if pattern.coalesced:
        return input
    unique, inverse = coalesced(pattern)
    return sparse(unique, added(values_of(input), inverse, unique.count), "CoalesceBackward0")


def to_dense(input: Tensor) -> Tensor:
    """The dense tensor of a sparse one."""
    pattern = input.array.pattern
    count = 1
    for size in pattern.shape:
        count *= size
    return added(elements_of(input), flat(pattern), count).reshape(tuple(input.array.shape))


def to_coo(input: Tensor) -> Tensor:
    """A sparse tensor as one of coordinates."""
    pattern = input.array.pattern
    if pattern.layout is sparse_coo:
        return input
    made, order = pattern.kept(_as_coo)
    values = elements_of(input)
    return sparse(made, values if order is None else values.index_select(0, order), "ToSparseBackward0")


def _as_coo(pattern: Pattern) -> tuple[Pattern, Tensor | None]:
    if pattern.layout is sparse_csr:
        return coo(coordinates(pattern), pattern.shape, True), None
    order = flat(pattern).argsort()
    return coo(coordinates(pattern).index_select(1, order), pattern.shape, True), order


def elementwise(input: Tensor) -> Tensor:
    """A sparse tensor that has a position for each value: itself, but for one of blocks."""
    return to_coo(input) if input.array.pattern.block else input


def _as_csr(pattern: Pattern) -> tuple[Pattern, None]:
    crow, col, _ = compressed(pattern)
    return Pattern(sparse_csr, (crow, col), pattern.shape, True), None


def _as_csc(pattern: Pattern) -> tuple[Pattern, Tensor]:
    rows, columns = coordinates(pattern)
    order = columns.argsort(stable=True)
    begins = ops.arange(pattern.shape[1] + 1, device=rows.device)
    ccol = ops.searchsorted(columns.index_select(0, order), begins)
    return Pattern(sparse_csc, (ccol, rows.index_select(0, order)), pattern.shape, True), order


def _compressed(input: Tensor, wanted: layout) -> Tensor:
    """A sparse matrix in compressed rows or columns."""
    input = coalesce(to_coo(input))
    pattern, order = input.array.pattern.kept(_as_csr if wanted is sparse_csr else _as_csc)
    values = values_of(input)
    return sparse(pattern, values if order is None else values.index_select(0, order), "ToSparseCsrBackward0")


def _blocked(input: Tensor, wanted: layout, block: tuple[int, int]) -> Tensor:
    """A sparse matrix in blocks: those that have a value, in the order of the rows or the columns."""
    input = coalesce(to_coo(input))
    pattern, values = input.array.pattern, values_of(input)
    height, width = block
    shape = pattern.shape[0] // height, pattern.shape[1] // width
    rows, columns = coordinates(pattern)
    down, across = (ops.div(a, b, rounding_mode="floor") for a, b in ((rows, height), (columns, width)))
    outer, inner = (across, down) if wanted in BY_COLUMNS else (down, across)
    outer_size, inner_size = shape[::-1] if wanted in BY_COLUMNS else shape
    found, inverse = (outer * inner_size + inner).unique(return_inverse=True)
    inside = (rows - down * height) * width + (columns - across * width)
    count = found.shape[0]
    elements = added(values, inverse * (height * width) + inside, count * height * width)
    begins = ops.arange(outer_size + 1, device=rows.device) * inner_size
    parts = (ops.searchsorted(found, begins), found % max(inner_size, 1))
    made = Pattern(wanted, parts, pattern.shape, True, block)
    return sparse(made, elements.reshape(count, *block, *values.shape[1:]), "ToSparseBsrBackward0")


def _block_of(input: Tensor, wanted: layout, blocksize: Sequence[int] | None) -> tuple[int, ...]:
    """The sizes of the blocks of a matrix that is to have this layout."""
    name = f"to_{wanted.name}"
    if len(input.array.pattern.shape) != 2:
        raise ShapeError(f"{name}: expected a matrix, with or without dense dimensions, got shape {list(input.shape)}")
    if wanted not in BLOCKED:
        if blocksize is not None:
            raise LayoutError(f"{name}: the layout has no blocks: leave blocksize out")
        return ()
    if blocksize is None:
        if not input.array.pattern.block:
            raise LayoutError(f"{name}: conversion to {wanted} without blocksize argument given is not supported")
        return input.array.pattern.block
    height, width = block = tuple(blocksize)
    rows, columns = input.array.pattern.shape
    if height < 1 or width < 1 or rows % height or columns % width:
        raise ShapeError(
            f"{name}: tensor sparse size ({rows},{columns}) must be divisible by given blocksize ({height},{width})"
        )
    return block


def to_layout(input: Tensor, wanted: layout | None, blocksize: Sequence[int] | None = None) -> Tensor:
    """A sparse tensor in another layout; None is that of coordinates. Layouts of blocks need their sizes, unless it has
    blocks."""
    if wanted in (sparse_coo, None):
        return to_coo(input)
    if wanted is strided:
        return to_dense(input)
    if wanted not in COMPRESSED:
        raise LayoutError(f"layout {wanted} is not supported: use sparse_coo or {', '.join(map(str, COMPRESSED))}")
    block = _block_of(input, wanted, blocksize)
    pattern = input.array.pattern
    if pattern.layout is wanted and pattern.block == block:
        return input
    return _blocked(input, wanted, block) if block else _compressed(input, wanted)  # type: ignore[arg-type]


def as_layout_of(input: Tensor, other: Tensor) -> Tensor:
    """A sparse tensor in the layout of another of its shape."""
    return to_layout(input, other.array.pattern.layout, other.array.pattern.block or None)


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
    """A tensor without entries, otherwise as a sparse one."""
    pattern = input.array.pattern
    *begins, plain = pattern.parts
    parts = (*map(ops.zeros_like, begins), plain[..., :0])
    made = Pattern(pattern.layout, parts, pattern.shape, True, pattern.block)
    return sparse(made, ops.zeros_like(input.array.values[:0]))
