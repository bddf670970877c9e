"""From one placement to another: what the processes send each other, on tensors without a history."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from corefw.dispatch.declare import ops
from corefw.distributed.device_mesh import DeviceMesh
from corefw.distributed.tensor.placements import WHOLE, Partial, Placement, Placements, Shard
from corefw.tensor import Tensor


class _Step:
    """A part, and its change of placement along dimension `dim` of a mesh.

    Attributes: ``sizes(n)`` the lengths of the parts of a dimension of length n.
    """

    def __init__(self, local: Tensor, mesh: DeviceMesh, dim: int):
        self.local, self.group = local, mesh.get_group(dim)
        self.count, self.index = mesh.size(dim), mesh.get_local_rank(dim)

    def sizes(self, n: int) -> list[int]:
        return [Shard.local_shard_size_and_offset(n, self.count, i)[0] for i in range(self.count)]

    def split(self, d: int) -> Tensor:
        """This process's part of what all have."""
        size, start = Shard.local_shard_size_and_offset(self.local.shape[d], self.count, self.index)
        return self.local.narrow(d, start, size).contiguous().clone()

    def gathered(self, d: int, n: int) -> Tensor:
        """The whole of parts along `d`, which has length n."""
        sizes = self.sizes(n)
        parts = ops.all_gathered(_padded(self.local, d, sizes[0]), self.group)
        return ops.cat([part.narrow(d, 0, size) for part, size in zip(parts, sizes)], d)

    def reduced(self, operation: str) -> Tensor:
        """The whole of terms."""
        return self._averaged(ops.all_reduced(self.local, _word(operation), self.group), operation)

    def reduced_and_split(self, operation: str, d: int) -> Tensor:
        """This process's part of the whole of terms."""
        sizes = self.sizes(self.local.shape[d])
        parts = ops.stack([_padded(part, d, sizes[0]) for part in self.local.split(sizes, d)])
        result = ops.reduce_scattered(parts, _word(operation), self.group).narrow(d, 0, sizes[self.index])
        return self._averaged(result.contiguous(), operation)

    def _averaged(self, result: Tensor, operation: str) -> Tensor:
        return result / self.count if operation == "avg" else result

    def exchanged(self, source: int, n: int, target: int) -> Tensor:
        """The part along `target` from parts along `source`, which has length n."""
        local = self.local
        parts = local.split(self.sizes(local.shape[target]), target)
        shapes = [list(parts[self.index].shape) for _ in parts]
        for shape, size in zip(shapes, self.sizes(n)):
            shape[source] = size
        received = [prod(shape) for shape in shapes]
        flat = ops.cat([part.reshape(-1) for part in parts])
        result = ops.exchanged(flat, tuple(received), tuple(part.numel() for part in parts), self.group)
        return ops.cat([part.view(shape) for part, shape in zip(result.split(received), shapes)], source)

    def term(self, operation: str) -> Tensor:
        """This process's term of what all have."""
        if self.index == 0 or operation not in ("sum", "product"):
            return self.local
        return ops.zeros_like(self.local) if operation == "sum" else ops.ones_like(self.local)


def _word(operation: str) -> str:
    return "sum" if operation == "avg" else operation


def _padded(part: Tensor, d: int, size: int) -> Tensor:
    """A part with zeros behind it, as long as the longest."""
    if part.shape[d] == size:
        return part.contiguous()
    shape = list(part.shape)
    shape[d] = size - shape[d]
    return ops.cat([part, part.new_zeros(shape)], d)


def redistributed(
    local: Tensor, shape: Sequence[int], mesh: DeviceMesh, source: Placements, target: Placements
) -> Tensor:
    """This process's part of a tensor of `shape` at the placements `target`, from that at `source`.

    One dimension of the mesh after another; where several cut the same dimension of the tensor, whose parts are parts
    of parts then, they are undone first, the last one first.
    """
    current = list(source)

    def length(dim: int, d: int) -> int:
        """Of dimension d before the mesh's dimension `dim` cuts it."""
        n = shape[d]
        for i in range(dim):
            if current[i].is_shard(d):
                n, _ = Shard.local_shard_size_and_offset(n, mesh.size(i), mesh.get_local_rank(i))
        return n

    def change(dim: int, wanted: Placement) -> None:
        nonlocal local
        before = current[dim]
        if before == wanted:
            return
        step = _Step(local, mesh, dim)
        if isinstance(before, Shard):
            n = length(dim, before.dim)
            if isinstance(wanted, Shard):
                local = step.exchanged(before.dim, n, wanted.dim)
            else:
                local = step.gathered(before.dim, n)
        elif isinstance(before, Partial):
            if isinstance(wanted, Shard):
                local = step.reduced_and_split(before.reduce_op, wanted.dim)
            else:
                local = step.reduced(before.reduce_op)
        elif isinstance(wanted, Shard):
            local = step.split(wanted.dim)
        elif isinstance(wanted, Partial):
            local = step.term(wanted.reduce_op)
        current[dim] = WHOLE if isinstance(wanted, Partial) and not before.is_replicate() else wanted
        change(dim, wanted)

    for dim in reversed(range(mesh.ndim)):
        if isinstance(current[dim], Shard) and _is_tangled(dim, current, target):
            change(dim, WHOLE)
    for dim, wanted in enumerate(target):
        change(dim, wanted)
    return local


def _is_tangled(dim: int, source: Sequence[Placement], target: Sequence[Placement]) -> bool:
    """Whether a dimension of the tensor that the mesh's `dim` cuts, before or after, is cut by another one too, and
    `dim` changes or one before it, whose parts it cuts."""
    own = {p.dim for p in (source[dim], target[dim]) if isinstance(p, Shard)}
    return any(
        (source[dim] != target[dim] or (i < dim and a != b))
        and any(isinstance(p, Shard) and p.dim in own for p in (a, b))
        for i, (a, b) in enumerate(zip(source, target))
        if i != dim
    )
