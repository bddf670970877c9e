"""What a checkpoint holds, as its reader tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from corefw.dtypes import dtype, float32
from corefw.shapes import Size


@dataclass
class ChunkStorageMetadata:
    """A block of a tensor: where it begins in each dimension, and how long it is. Of a part that is no block, both
    count the elements of the block that it lies in, one after another."""

    offsets: Size
    sizes: Size


@dataclass
class TensorProperties:
    """The dtype of a tensor."""

    dtype: dtype = field(default_factory=lambda: float32)


@dataclass
class TensorStorageMetadata:
    """A tensor: its dtype, its whole size, and the blocks in which it was written."""

    properties: TensorProperties
    size: Size
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """What is no tensor."""


@dataclass
class Metadata:
    """What a checkpoint holds.

    Attributes: ``state_dict_metadata`` {path with dots: what is there}; ``planner_data`` {path with dots: path as a
    tuple}; ``storage_data`` {path with dots: the files that have it}; ``version`` of the format.
    """

    state_dict_metadata: dict[str, TensorStorageMetadata | BytesStorageMetadata]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: Any = None
    version: str | None = None


def chunk(start: int, stop: int, sizes: Sequence[int], block: Sequence[Sequence[int]] = ()) -> ChunkStorageMetadata:
    """The elements from `start` to `stop` of a block, (where it begins, how long it is), or of a whole tensor.

    >>> chunk(0, 6, [2, 3])
    ChunkStorageMetadata(offsets=torch.Size([0, 0]), sizes=torch.Size([2, 3]))
    >>> chunk(2, 4, [2, 3])
    ChunkStorageMetadata(offsets=torch.Size([2]), sizes=torch.Size([2]))
    """
    offsets, lengths = block or ([0] * len(sizes), sizes)
    count = 1
    for length in lengths:
        count *= length
    if (start, stop) == (0, count):
        return ChunkStorageMetadata(Size(offsets), Size(lengths))
    return ChunkStorageMetadata(Size([start]), Size([stop - start]))
