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


class Room(NamedTuple):
    """So many bytes that are free until call number `first`, and there from number `since` on."""

    size: int
    first: int
    since: int = 0


def lodged(blocks: Sequence[Block], rooms: Sequence[Room]) -> dict[int, tuple[int, int]]:
    """By number of a block that finds a place in a room the number of the room, and where it begins there.

    >>> lodged([Block(64, 0, 1), Block(64, 0, 2), Block(64, 2, 2)], [Room(64, 3), Room(64, 2)])
    {0: (0, 0), 2: (0, 0)}
    """
    found: dict[int, tuple[int, int]] = {}
    guests: list[list[int]] = [[] for _ in rooms]
    in_order = sorted(range(len(rooms)), key=lambda r: rooms[r].size)
    for i in _largest_first(blocks):
        for r in in_order:
            if rooms[r].since <= blocks[i].first and blocks[i].last < rooms[r].first and aligned(blocks[i].size) <= rooms[r].size:
                begin = _begin(blocks[i], [(blocks[j], found[j][1]) for j in guests[r]])
                if begin + aligned(blocks[i].size) <= rooms[r].size:
                    found[i] = r, begin
                    guests[r].append(i)
                    break
    return found


def offsets(blocks: Sequence[Block]) -> tuple[list[int], int]:
    """Where each block begins, and how many bytes they need together.

    The largest come first; each goes to the smallest gap that holds it among those that are in use with it.

    >>> offsets([Block(64, 0, 1), Block(128, 1, 2), Block(64, 2, 3)])
    ([128, 0, 128], 192)
    """
    begins, total = [0] * len(blocks), 0
    done: list[int] = []
    for i in _largest_first(blocks):
        begins[i] = _begin(blocks[i], [(blocks[j], begins[j]) for j in done])
        total = max(total, begins[i] + aligned(blocks[i].size))
        done.append(i)
    return begins, total


def _largest_first(blocks: Sequence[Block]) -> list[int]:
    return sorted(range(len(blocks)), key=lambda i: (-blocks[i].size, blocks[i].first))


def _begin(block: Block, others: Sequence[tuple[Block, int]]) -> int:
    """Where a block may begin among others, given with where they do: in the smallest gap that holds it, or behind."""
    size, first, last = aligned(block.size), block.first, block.last
    taken = sorted(
        (begin, begin + aligned(other.size)) for other, begin in others if first <= other.last and other.first <= last
    )
    end, best, least = 0, None, 0
    for begin, stop in taken:
        gap = begin - end
        if gap >= size and (best is None or gap < least):
            best, least = end, gap
        end = max(end, stop)
    return end if best is None else best


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
