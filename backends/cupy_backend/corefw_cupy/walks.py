"""How elementwise functions walk over their operands, by shapes and strides.

- flat: all operands lie in memory in the same order, without gaps (a single element may stand for a whole operand);
- rows: along the innermost dimension each operand has neighbours in packs of 16 bytes, or one element for all;
- tiled: an operand has its neighbours along another dimension than the result, so that tiles are transposed in shared
  memory;
- strided: anything else, element by element.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from corefw import shapes
from corefw_cupy.division import MOST, divisor_type, divisors
from corefw_cupy.launch import THREADS, argument, blocks
from corefw_cupy.layouts import memory_order, merged

MAX_DIMS = 16  # as in elementwise.cuh
MAX_OPERANDS = 5
MOST_TOGETHER = 4  # elements that a thread of a strided walk works on; as in elementwise.cuh
PACK = 16  # bytes
WORTH_TURNING = 8  # elements along both dimensions of a tile
FEW_THREADS = 2 * 132 * THREADS  # that keep a device busy: below, each works on one element


@dataclass(frozen=True)
class Plan:
    """How operands of certain shapes and strides are walked over."""

    shape: tuple[int, ...]  # of the result
    order: tuple[int, ...] | None  # memory order of a new result, if not row-major
    n: int
    walk: str  # "flat", "rows", "tiled" or "strided"
    singles: int  # of a flat walk: the bits of operands that have a single element
    layout: Any  # of the others: the struct Layout or Tiles
    wide: bool  # whether offsets need 64 bits
    grid: tuple[int]  # of the launch


@dataclass(frozen=True)
class Steps:
    """Dimensions from the outermost in the result's memory to the innermost: sizes, and for each operand and last the
    result the distances between neighbours in elements; `width` elements of the widest operand are a pack."""

    sizes: list[int]
    strides: list[list[int]]
    width: int

    @property
    def reach(self) -> int:
        """The largest number that counts elements or the distance between two of an operand."""
        return max(prod(self.sizes), *(sum(abs(s) * (n - 1) for s, n in zip(own, self.sizes)) for own in self.strides))

    def even(self, k: int, inner: int) -> bool:
        """Whether an operand's packs along a dimension lie where packs do, if its first one does."""
        return self.strides[k][inner] == 1 and not any(
            step % self.width for d, step in enumerate(self.strides[k]) if d != inner
        )

    @property
    def packed(self) -> bool:
        """Whether rows consist of packs, of which an operand that does not step along a row has one element."""
        return not self.sizes[-1] % self.width and all(
            self.even(k, -1 % len(own)) or (own[-1] == 0 and k < len(self.strides) - 1)
            for k, own in enumerate(self.strides)
        )

    def least(self, k: int) -> int:
        """The dimension along which an operand's elements lie closest together."""
        own = self.strides[k]
        return min(range(len(own)), key=lambda d: (abs(own[d]) or 1 << 62, -d))


@lru_cache(maxsize=1 << 14)
def plan(sizes: tuple[int, ...], operands: tuple, out: tuple | None) -> Plan:
    """The plan for inputs given as (shape, strides in bytes), and the given output.

    Args:
        sizes: bytes of an element of each input, and of the output.
        operands: (shape, strides) of each input.
        out: (shape, strides) of the output, or None if it is to be allocated.
    """
    shape = shapes.broadcast(*(s for s, _ in operands)) if operands or out is None else out[0]
    if out is not None and out[0] != shape:
        raise ValueError(f"out has shape {out[0]}, but the result has {shape}")
    n = prod(shape)
    if n == 0:
        return Plan(shape, None, 0, "flat", 0, None, False, (1,))
    walked = (*operands, *([] if out is None else [out]))
    orders = [memory_order(s, t, size) if s == shape else None for (s, t), size in zip(walked, sizes)]
    singles = sum(1 << k for k, (s, _) in enumerate(operands) if prod(s) == 1 and n != 1)
    same = {o for k, o in enumerate(orders) if not singles >> k & 1}
    if (len(same) <= 1 and None not in same) or n == 1:
        order = same.pop() if len(same) == 1 else None
        packs = -(-n // (PACK // max(sizes)))  # what a thread reads and writes at once
        if order == tuple(range(len(shape))) or out is not None:
            order = None
        return Plan(shape, order, n, "flat", singles, None, False, blocks(packs))
    made = out or (shape, tuple(sizes[-1] * step for step in shapes.contiguous_strides(shape)))
    steps = _steps(shape, (*operands, made), sizes)
    wide = steps.reach > MOST
    if steps.packed:
        layout = _in_packs(steps, wide)
        return Plan(shape, None, n, "rows", 0, argument(layout), wide, blocks(n // steps.width))
    if (tiles := _tiles(steps, sizes, wide)) is not None:
        return Plan(shape, None, n, "tiled", 0, argument(tiles), wide, (int(tiles["layout"]["n"][0]),))
    together = min(steps.width, MOST_TOGETHER)
    threads = max(-(-n // together), min(n, FEW_THREADS))
    layout = _layout(steps.sizes, steps.strides, wide)
    return Plan(shape, None, n, "strided", 0, argument(layout), wide, blocks(threads))


def strided(shape: tuple[int, ...], operands: list) -> tuple[np.ndarray, bool]:
    """The struct for a walk over any number of operands, given as (shape, strides in bytes, bytes of an element) and
    the results last, element by element, and whether offsets need 64 bits."""
    steps = _steps(shape, tuple((s, t) for s, t, _ in operands), tuple(size for _, _, size in operands))
    wide = steps.reach > MOST
    return _layout(steps.sizes, steps.strides, wide, operands=len(operands)), wide


def _steps(shape: tuple[int, ...], walked: tuple, sizes: tuple[int, ...]) -> Steps:
    """The dimensions of (shape, strides in bytes) of all operands, joined where possible."""
    strides = []
    for (s, t), size in zip(walked, sizes):
        lead = len(shape) - len(s)
        strides.append([0] * lead + [step // size if m != 1 else 0 for step, m in zip(t, s)])
    order = sorted(range(len(shape)), key=lambda d: -abs(strides[-1][d]))
    kept, steps = merged([shape[d] for d in order], [[own[d] for d in order] for own in strides])
    if len(kept) > MAX_DIMS:
        raise ValueError(f"operands of {len(kept)} dimensions that cannot be joined; at most {MAX_DIMS} are walked")
    return Steps(kept, steps, PACK // max(sizes))


def _offset_type(wide: bool) -> str:
    return "i8" if wide else "i4"


def _layout_type(wide: bool, operands: int) -> np.dtype:
    """The struct Layout in elementwise.cuh."""
    strides = ("strides", _offset_type(wide), (operands, MAX_DIMS))
    return np.dtype([("n", "i8"), ("dims", "i8"), ("singles", "i8"), ("sizes", divisor_type(wide), MAX_DIMS), strides])


def _layout(
    sizes: list[int], strides: list[list[int]], wide: bool, singles: int = 0, operands: int = MAX_OPERANDS
) -> np.ndarray:
    """The struct for a walk over all positions in dimensions of these sizes; with room for some operands."""
    layout = np.zeros(1, _layout_type(wide, operands))
    layout["n"], layout["dims"], layout["singles"] = prod(sizes), len(sizes), singles
    layout["sizes"][0, : len(sizes)] = divisors(sizes, wide)
    for k, own in enumerate(strides):
        layout["strides"][0, k, : len(sizes)] = own
    return layout


def _in_packs(steps: Steps, wide: bool) -> np.ndarray:
    """The struct for a walk over packs."""
    sizes = [*steps.sizes[:-1], steps.sizes[-1] // steps.width]
    strides = [[*own[:-1], own[-1] * steps.width] for own in steps.strides]
    singles = sum(1 << k for k, own in enumerate(steps.strides) if own[-1] == 0)
    return _layout(sizes, strides, wide, singles)


def side(width: int) -> int:
    """Elements along a side of a tile; as in tiles.cuh."""
    return 64 if width > 4 else 32 if width > 1 else 16


def _tiles(steps: Steps, sizes: tuple[int, ...], wide: bool) -> np.ndarray | None:
    """The struct Tiles in tiles.cuh; None if no operand is worth turning."""
    across, inner = steps.sizes[-1], len(steps.sizes) - 1
    candidates = [
        (sizes[k], steps.least(k))
        for k, own in enumerate(steps.strides[:-1])
        if abs(own[steps.least(k)]) < abs(own[inner])
        and abs(own[steps.least(k)]) * sizes[k] <= PACK
        and min(across, steps.sizes[steps.least(k)]) >= WORTH_TURNING
    ]
    if not candidates:
        return None
    _, down = max(candidates)
    transposed = [k for k in range(len(sizes) - 1) if steps.least(k) == down and abs(steps.strides[k][inner]) > 1]
    width, length = steps.width, steps.sizes[down]
    packed = across % width == 0 and length % width == 0
    for k, own in enumerate(steps.strides):
        along = down if k in transposed else inner
        packed = packed and (steps.even(k, along) or (own[inner] == 0 and k < len(sizes) - 1))
    outer = [d for d in range(inner) if d != down]
    edge = side(width)
    layout = _layout(
        [*(steps.sizes[d] for d in outer), -(-length // edge), -(-across // edge)],
        [[*(own[d] for d in outer), own[down] * edge, own[inner] * edge] for own in steps.strides],
        wide,
    )
    offset = _offset_type(wide)
    tiles = np.zeros(
        1,
        [
            ("transposed", "i8"),
            ("packed", "i8"),
            ("rows", offset),
            ("columns", offset),
            ("down", offset, MAX_OPERANDS),
            ("across", offset, MAX_OPERANDS),
            ("layout", layout.dtype),
        ],
    )
    tiles["transposed"], tiles["packed"] = sum(1 << k for k in transposed), packed
    tiles["rows"], tiles["columns"], tiles["layout"] = length, across, layout
    for k, own in enumerate(steps.strides):
        tiles["down"][0, k], tiles["across"][0, k] = own[down], own[inner]
    return tiles
