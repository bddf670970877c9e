"""The memory of a plan: blocks that are not in use at the same time share addresses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

ALIGNMENT = 64  # bytes


class Block(NamedTuple):
    """So many bytes that are in use from call number `first` to call number `last`."""

    size: int
    first: int
    last: int


def aligned(size: int) -> int:
    """The next multiple of the alignment.

    >>> aligned(65)
    128
    """
    return -(-size // ALIGNMENT) * ALIGNMENT


def offsets(blocks: Sequence[Block]) -> tuple[list[int], int]:
    """Where each block begins, and how many bytes they need together.

    The largest come first; each goes to the smallest gap that holds it among those that are in use with it.

    >>> offsets([Block(64, 0, 1), Block(128, 1, 2), Block(64, 2, 3)])
    ([128, 0, 128], 192)
    """
    begins, total = [0] * len(blocks), 0
    done: list[int] = []
    for i in sorted(range(len(blocks)), key=lambda i: (-blocks[i].size, blocks[i].first)):
        size, first, last = blocks[i]
        size = aligned(size)
        taken = sorted(
            (begins[j], begins[j] + aligned(blocks[j].size))
            for j in done
            if first <= blocks[j].last and blocks[j].first <= last
        )
        end, best, least = 0, None, 0
        for begin, stop in taken:
            gap = begin - end
            if gap >= size and (best is None or gap < least):
                best, least = end, gap
            end = max(end, stop)
        begins[i] = end if best is None else best
        total = max(total, begins[i] + size)
        done.append(i)
    return begins, total


def most(blocks: Sequence[Block]) -> int:
    """The bytes of the blocks that are in use at once, at the call where these are most: no plan needs fewer."""
    changes: dict[int, int] = {}
    for block in blocks:
        changes[block.first] = changes.get(block.first, 0) + aligned(block.size)
        changes[block.last + 1] = changes.get(block.last + 1, 0) - aligned(block.size)
    now = peak = 0
    for _, change in sorted(changes.items()):
        now += change
        peak = max(peak, now)
    return peak
