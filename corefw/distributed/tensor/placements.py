"""Placements: how a tensor lies along one dimension of a mesh, and where that puts the part of each process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corefw.distributed.device_mesh import DeviceMesh

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """How a tensor lies along one dimension of a mesh."""

    __slots__ = ()

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether it is in parts, along `dim` if that is given."""
        return False

    def is_replicate(self) -> bool:
        """Whether it is whole on every process."""
        return False

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether it is in summands (or other terms of the reduction `reduce_op`)."""
        return False

    def _facts(self) -> tuple:
        return ()

    def __eq__(self, other: object) -> bool:
        return self.__class__ is other.__class__ and self._facts() == other._facts()

    def __hash__(self) -> int:
        return hash((self.__class__, self._facts()))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} cannot be changed; make another")


class Shard(Placement):
    """In parts along the dimension `dim` of the tensor, as `torch.chunk` cuts it: the last part may be smaller, and
    processes behind it have none.

    >>> Shard(0), str(Shard(1))
    (Shard(dim=0), 'S(1)')
    """

    __slots__ = ("dim",)
    dim: int

    def __init__(self, dim: int):
        object.__setattr__(self, "dim", dim)

    def is_shard(self, dim: int | None = None) -> bool:
        return dim is None or dim == self.dim

    @staticmethod
    def local_shard_size_and_offset(curr_local_size: int, num_chunks: int, rank: int) -> tuple[int, int]:
        """How long part `rank` of `num_chunks` is, and where it begins.

        >>> [Shard.local_shard_size_and_offset(5, 4, rank) for rank in range(4)]
        [(2, 0), (2, 2), (1, 4), (0, 5)]
        """
        step = -(-curr_local_size // num_chunks)
        start = min(step * rank, curr_local_size)
        return min(step, curr_local_size - start), start

    def _facts(self) -> tuple:
        return (self.dim,)

    def __repr__(self) -> str:
        return f"Shard(dim={self.dim})"

    def __str__(self) -> str:
        return f"S({self.dim})"

    def __reduce__(self) -> Any:
        return Shard, (self.dim,)


class Replicate(Placement):
    """Whole on every process."""

    __slots__ = ()

    def is_replicate(self) -> bool:
        return True

    def __repr__(self) -> str:
        return "Replicate()"

    def __str__(self) -> str:
        return "R"


class Partial(Placement):
    """In terms of a reduction, one on each process.

    Args:
        reduce_op: "sum", "avg", "product", "min" or "max".
    """

    __slots__ = ("reduce_op",)
    reduce_op: str

    def __init__(self, reduce_op: str = "sum"):
        if reduce_op not in ("sum", "avg", "product", "min", "max"):
            raise ValueError(f'Partial: expected "sum", "avg", "product", "min" or "max", but got {reduce_op!r}')
        object.__setattr__(self, "reduce_op", reduce_op)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        return reduce_op is None or reduce_op == self.reduce_op

    def _facts(self) -> tuple:
        return (self.reduce_op,)

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"

    def __reduce__(self) -> Any:
        return Partial, (self.reduce_op,)


Placements = tuple[Placement, ...]
WHOLE = Replicate()


class Spec:
    """Where a tensor lies: a mesh, and a placement along each of its dimensions.

    >>> Spec(None, (Shard(0), Replicate())).name
    'S(0)R'
    """

    __slots__ = ("_hash", "mesh", "placements")

    def __init__(self, mesh: DeviceMesh, placements: Placements):
        self.mesh, self.placements = mesh, placements
        self._hash = hash((mesh, placements))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spec) and self.placements == other.placements and self.mesh == other.mesh

    def __hash__(self) -> int:
        return self._hash

    @property
    def name(self) -> str:
        """The placements in short."""
        return "".join(map(str, self.placements))

    @property
    def is_whole(self) -> bool:
        """Whether every process has all elements."""
        return all(p.is_replicate() for p in self.placements)

    @property
    def whole(self) -> Spec:
        """The same mesh, with all elements on every process."""
        return self.replaced([WHOLE] * len(self.placements))

    def replaced(self, placements: Sequence[Placement]) -> Spec:
        """The same mesh with other placements."""
        return Spec(self.mesh, tuple(placements))

    def of_gradient(self) -> Spec:
        """Where the gradient lies of a tensor that lies here: that of a term is that of the whole."""
        return self.replaced([WHOLE if p.is_partial() else p for p in self.placements])

    def extent(self, shape: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The shape of this process's part of a tensor of `shape`, and the position of its first element."""
        sizes, offsets = list(shape), [0] * len(shape)
        coordinate = self.mesh.get_coordinate()
        if coordinate is None:
            raise RuntimeError(f"rank {self.mesh.get_rank()} has no part of tensors on {self.mesh}")
        for n, index, placement in zip(self.mesh.shape, coordinate, self.placements):
            if isinstance(placement, Shard):
                d = placement.dim
                sizes[d], start = Shard.local_shard_size_and_offset(sizes[d], n, index)
                offsets[d] += start
        return tuple(sizes), tuple(offsets)


def canonical(placements: Sequence[Placement] | None, mesh: DeviceMesh, ndim: int) -> Placements:
    """Placements along all dimensions of a mesh, of a tensor with `ndim` dimensions; all whole for None."""
    if placements is None:
        return (WHOLE,) * mesh.ndim
    if len(placements) != mesh.ndim:
        raise ValueError(
            f"`placements` must have the same length as `device_mesh.ndim`! Found placements length: "
            f"{len(placements)}, and device_mesh.ndim: {mesh.ndim}."
        )
    found = []
    for placement in placements:
        if not isinstance(placement, Placement):
            raise RuntimeError(f"placements: expected Shard, Replicate or Partial, but got {placement!r}")
        if isinstance(placement, Shard):
            if not -ndim <= placement.dim < ndim:
                raise ValueError(f"{placement!r}: a tensor with {ndim} dimensions has no such dimension")
            placement = Shard(placement.dim % ndim)
        found.append(placement)
    return tuple(found)
