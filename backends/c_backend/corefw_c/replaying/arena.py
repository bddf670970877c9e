"""The memory of a plan: blocks that are not in use at the same time share addresses."""

from __future__ import annotations

from bisect import insort
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


class Taken(NamedTuple):
    """Bytes that a block takes, from call number `first` to call number `last`."""

    begin: int
    end: int
    first: int
    last: int


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
    guests: list[list[Taken]] = [[] for _ in rooms]
    in_order = sorted(range(len(rooms)), key=lambda r: rooms[r].size)
    for i in _largest_first(blocks):
        for r in in_order:
            room, block = rooms[r], blocks[i]
            is_there = room.since <= block.first and block.last < room.first
            if is_there and aligned(block.size) <= room.size:
                place = _place(block, guests[r])
                if place.end <= room.size:
                    found[i] = r, place.begin
                    insort(guests[r], place)
                    break
    return found


def offsets(blocks: Sequence[Block]) -> tuple[list[int], int]:
    """Where each block begins, and how many bytes they need together.

    The largest come first; each goes to the smallest gap that holds it among those that are in use with it.

    >>> offsets([Block(64, 0, 1), Block(128, 1, 2), Block(64, 2, 3)])
    ([128, 0, 128], 192)
    """
    begins, total = [0] * len(blocks), 0
    done: list[Taken] = []
    for i in _largest_first(blocks):
        place = _place(blocks[i], done)
        begins[i], total = place.begin, max(total, place.end)
        insort(done, place)
    return begins, total


def _largest_first(blocks: Sequence[Block]) -> list[int]:
    return sorted(range(len(blocks)), key=lambda i: (-blocks[i].size, blocks[i].first))


def _place(block: Block, others: Sequence[Taken]) -> Taken:
    """What a block may take among others, which are in order: the smallest gap that holds it, or what is behind."""
    size, (_, first, last) = aligned(block.size), block
    end, best, least = 0, -1, 0
    for begin, stop, since, until in others:
        if first > until or since > last:
            continue
        gap = begin - end
        if gap >= size and (best < 0 or gap < least):
            best, least = end, gap
        if stop > end:
            end = stop
    begin = end if best < 0 else best
    return Taken(begin, begin + size, first, last)


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
