"""Which elements of a whole tensor a process has, for checkpoints."""

from __future__ import annotations

from typing import Any, NamedTuple

from corefw.distributed.fsdp.states import place_of
from corefw.tensor import Tensor


class Block(NamedTuple):
    """A block of a tensor: where it begins in each dimension, and how long it is."""

    start: list[int]
    sizes: list[int]

    def of(self, whole: Tensor) -> Tensor:
        """The block of a tensor, as a view."""
        for dim, (start, size) in enumerate(zip(self.start, self.sizes)):
            whole = whole.narrow(dim, start, size)
        return whole

    def overlaps(self, other: Block) -> bool:
        """Whether two blocks have elements in common."""
        sides = zip(self.start, self.sizes, other.start, other.sizes)
        return all(a < b + m and b < a + n for a, n, b, m in sides)


class Extent:
    """Where the elements of a tensor stand in the whole that it is a part of, on this process.

    Args:
        tensor: a plain tensor, which is a whole; a piece of a parameter that `fully_shard` has cut, or a state that
            lies so; or a DTensor.

    Attributes: ``shape`` of the whole; ``block`` of it in which the elements are; ``span`` which of the block's
    elements they are, one after another; ``values`` the tensor that has them.
    """

    def __init__(self, tensor: Any):
        self.values = tensor
        self.shape, self.span = list(tensor.shape), range(tensor.numel())
        self._is_part, self._is_first = False, True
        self._whole: Tensor | None = None
        piece, spec = getattr(tensor, "piece", None), getattr(tensor, "_spec", None)
        if piece is not None:
            flat, index = place_of(piece)
            spec, self.shape = flat.specs[index], list(flat.whole_shapes[index])
            self.span, self._is_part, self._is_first = flat.spans[index], True, flat.is_first_copy
        self.block = Block([0] * len(self.shape), self.shape)
        if spec is not None:
            if any(p.is_partial() for p in spec.placements):
                raise ValueError("a DTensor in summands is no state: redistribute it before it is saved or loaded")
            sizes, start = spec.extent(self.shape)
            self.block, self._is_part = Block(list(start), list(sizes)), True
            # Of what is whole along a dimension of the mesh, the first process there writes.
            first = (p.is_shard() or i == 0 for p, i in zip(spec.placements, spec.mesh.get_coordinate()))
            self._is_first = self._is_first and all(first)
        if piece is None and spec is not None:
            self.values = tensor.to_local()
            self.span = range(self.values.numel())

    # -- to be written -------------------------------------------------------------------------------------------
    def is_written_by(self, rank: int) -> bool:
        """Whether the process of that rank writes the elements: of what is the same on all the first one."""
        return bool(self.span) and (self._is_first if self._is_part else rank == 0)

    def facts(self) -> list[Any]:
        """What tells where the elements stand."""
        return [self.span.start, self.span.stop, *self.block]

    # -- to be filled --------------------------------------------------------------------------------------------
    def wants(self, block: Block, span: range) -> bool:
        """Whether some of these elements of a block are wanted here."""
        if block == self.block:
            return self.span.start < span.stop and span.start < self.span.stop
        return bool(self.span) and self.block.overlaps(block)

    def take(self, values: Tensor, block: Block, span: range) -> None:
        """Take over what is wanted of the elements `span` of a block."""
        if block == self.block:
            low, high = max(span.start, self.span.start), min(span.stop, self.span.stop)
            self._put(values[low - span.start : high - span.start], low - self.span.start, high - self.span.start)
            return
        if self._whole is None:
            self._whole = values.new_empty(self.shape)
        target = block.of(self._whole)
        flat = target.contiguous().view(-1)
        flat[span.start : span.stop].copy_(values)
        target.copy_(flat.view(target.shape))

    def finish(self) -> None:
        """Take over what came in other blocks."""
        if self._whole is not None:
            own = self.block.of(self._whole).contiguous().view(-1)
            self._put(own[self.span.start : self.span.stop], 0, len(self.span))

    def _put(self, values: Tensor, start: int, stop: int) -> None:
        target = self.values.detach()
        flat = target.contiguous().view(-1)
        flat[start:stop].copy_(values)
        if not target.is_contiguous():
            target.copy_(flat.view(target.shape))
