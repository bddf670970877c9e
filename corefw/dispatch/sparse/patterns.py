"""Patterns: where the values of a sparse tensor stand, and what is worked out from that once."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from corefw import dtypes
from corefw.dispatch.registry import ops
from corefw.errors import PositionError, ShapeError
from corefw.graph.grad_mode import no_recording
from corefw.layouts import BY_COLUMNS, layout, sparse_coo, sparse_csr
from corefw.tensor import Tensor
from corefw.versions import InferenceCount


class Pattern:
    """The positions of the values of sparse tensors, which may share it.

    Attributes: ``layout`` sparse_coo or a compressed one; ``parts`` the positions, for sparse_coo a tensor of a row for
    each sparse dimension and a column for each value, for sparse_csr where the values of each row begin (and those of
    the last one end), and the column of each, for others likewise by columns or by blocks; ``shape`` the sizes of the
    sparse dimensions; ``coalesced`` whether it is known that no position repeats and that they are in the layout's
    order; ``block`` the sizes of the blocks, each of which has a matrix of values, or ().
    """

    __slots__ = ("_kept", "_versions", "block", "coalesced", "layout", "parts", "shape")

    def __init__(
        self, layout: layout, parts: tuple[Tensor, ...], shape: tuple[int, ...], coalesced: bool,
        block: tuple[int, ...] = (),
    ):  # fmt: skip
        self.layout, self.parts, self.shape, self.coalesced, self.block = layout, parts, shape, coalesced, block
        self._kept: dict[Callable, Any] = {}
        self._versions: list[int] = []

    @property
    def count(self) -> int:
        """The number of values, or of blocks of values."""
        return self.parts[-1].array.shape[-1]

    def with_parts(self, parts: tuple[Tensor, ...]) -> Pattern:
        """The same positions in other tensors."""
        return Pattern(self.layout, parts, self.shape, self.coalesced, self.block)

    def kept(self, work_out: Callable[[Pattern], Any]) -> Any:
        """What a function finds out of the pattern, kept until the positions are changed in place.

        Nothing is kept of positions made in inference mode, whose changes are not counted.
        """
        if any(part.version[0].__class__ is InferenceCount for part in self.parts):
            with no_recording():
                return work_out(self)
        versions = [+part.version[0] for part in self.parts]
        if versions != self._versions:
            self._kept, self._versions = {}, versions
        if work_out not in self._kept:
            with no_recording():
                self._kept[work_out] = work_out(self)
        return self._kept[work_out]


def coo(indices: Tensor, shape: tuple[int, ...], coalesced: bool = False) -> Pattern:
    """The pattern of a tensor of coordinates, (sparse dimensions, values)."""
    return Pattern(sparse_coo, (indices,), shape, coalesced)


def _wide(positions: Tensor) -> Tensor:
    return positions.to(dtypes.int64)


def row_of_entries(crow: Tensor, count: int) -> Tensor:
    """The row of each of the values, of which those of row r begin at ``crow[r]``."""
    return ops.searchsorted(_wide(crow), ops.arange(count, device=crow.device), right=True) - 1


def _coordinates(pattern: Pattern) -> Tensor:
    """The coordinates of the values, after a check that they are inside of the tensor."""
    if pattern.layout is sparse_coo:
        indices = pattern.parts[0]
    else:
        begins, plain = pattern.parts
        pairs = [row_of_entries(begins, pattern.count), _wide(plain)]
        if pattern.layout in BY_COLUMNS:
            pairs.reverse()
        if pattern.block:
            pairs = _of_elements(pairs, pattern.block)
        indices = ops.stack(pairs)
    if pattern.count:
        for dim, size in enumerate(pattern.shape):
            low, high = (int(bound) for bound in indices[dim].aminmax())
            if low < 0 or high >= size:
                wrong = low if low < 0 else high
                raise PositionError(
                    f"index {wrong} is out of bounds for dimension {dim} of a sparse tensor with size {size}"
                )
    return indices


def _of_elements(blocks: list[Tensor], sizes: tuple[int, ...]) -> list[Tensor]:
    """The rows and columns of the elements of blocks, block after block."""
    rows, columns = (
        place.reshape(-1, 1) * size + ops.arange(size, device=place.device) for place, size in zip(blocks, sizes)
    )
    both = ops.broadcast_tensors(rows.unsqueeze(2), columns.unsqueeze(1))
    return [places.flatten() for places in both]


def coordinates(pattern: Pattern) -> Tensor:
    """The coordinates of the values, (sparse dimensions, values), of blocks those of all their elements; PositionError
    if some are outside of the tensor."""
    return pattern.kept(_coordinates)


def flattened(indices: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Coordinates as positions in the flattened tensor of `shape`."""
    if prod(shape) > 2**63 - 1:
        raise ShapeError(f"a sparse tensor with sparse sizes {list(shape)} has more positions than int64 counts")
    flat = ops.zeros(indices.shape[1:], dtype=dtypes.int64, device=indices.device)
    for dim, size in enumerate(shape):
        flat = flat * size + indices[dim]
    return flat


def unflattened(flat: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The coordinates of positions in the flattened tensor of `shape`."""
    found = []
    for size in reversed(shape):
        found.append(flat % max(size, 1))
        flat = ops.div(flat, max(size, 1), rounding_mode="floor")
    if not found:
        return ops.zeros((0, *flat.shape), dtype=dtypes.int64, device=flat.device)
    return ops.stack(found[::-1])


def _flat(pattern: Pattern) -> Tensor:
    return flattened(coordinates(pattern), pattern.shape)


def flat(pattern: Pattern) -> Tensor:
    """The positions of the values in the tensor whose sparse dimensions are flattened."""
    return pattern.kept(_flat)


def _coalesced(pattern: Pattern) -> tuple[Pattern, Tensor]:
    positions, inverse = flat(pattern).unique(return_inverse=True)
    return coo(unflattened(positions, pattern.shape), pattern.shape, True), inverse


def coalesced(pattern: Pattern) -> tuple[Pattern, Tensor]:
    """The pattern with each position once and in order, and for each value of this one where it is added there."""
    return pattern.kept(_coalesced)


def _compressed(pattern: Pattern) -> tuple[Tensor, Tensor, Tensor | None]:
    if pattern.layout is sparse_csr:
        crow, col = pattern.parts
        return _wide(crow), _wide(col), None
    rows, columns = coordinates(pattern)
    order = None
    by_rows = pattern.coalesced and pattern.layout is sparse_coo
    if not by_rows and not bool((rows[1:] >= rows[:-1]).all()):
        order = rows.argsort(stable=True)
        rows, columns = rows[order], columns[order]
    begins = ops.arange(pattern.shape[0] + 1, device=rows.device)
    return ops.searchsorted(rows.contiguous(), begins), columns.contiguous(), order


def compressed(pattern: Pattern) -> tuple[Tensor, Tensor, Tensor | None]:
    """A matrix in compressed rows: where each row's values begin, their columns, and the order of the values in which
    they follow each other, None if they do."""
    return pattern.kept(_compressed)


def _transposed(pattern: Pattern) -> Pattern:
    indices = coordinates(pattern).flip(0)
    return coo(indices, pattern.shape[::-1])


def transposed(pattern: Pattern) -> Pattern:
    """The pattern of the transposed matrix, as coordinates."""
    return pattern.kept(_transposed)
