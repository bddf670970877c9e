"""Padding with a constant, and with elements of the array itself."""

from functools import lru_cache

import numpy as np

from corefw.dispatch.backend import Kernel
from corefw.dispatch.registry import shape_rule
from corefw.shapes import padded_positions
from corefw_c.arrays import dense, empty
from corefw_c.creation import scalar
from corefw_c.library import fail
from corefw_c.positions import Blocks, copied


@lru_cache(maxsize=1024)
def _borders(size, before, after, mode):
    """The positions of what stands before and after the elements that remain of a dimension, None for none; where these
    begin and end."""
    places = np.arange(-before, size + after, dtype=np.int64)
    positions = padded_positions(places, size, before, after, mode)
    first, last = max(before, 0), max(before + size + min(after, 0), 0)
    borders = [part if part.size else None for part in (positions[:first].copy(), positions[last:].copy())]
    return (*borders, max(-before, 0), size - max(-after, 0))


def kernels(lib):
    """The family's kernels."""
    blocks = Blocks(lib)

    def constant_pad_nd(input, pad, value):
        if not input.ndim and not pad:
            return input.copy()
        shape = shape_rule("constant_pad_nd")(input.shape, pad)
        before = [0] * (input.ndim - len(pad) // 2) + [*pad[-2::-2]]
        output, border = empty(shape, input.dtype), scalar(value, input.dtype)
        if status := lib.constant_pad(id(input), before, id(border), id(output)):
            fail("constant_pad_nd", status)
        return output

    def extended(input, dim, before, after, mode):
        """The array with borders along one dimension: what remains of it moves in rows, few elements one by one."""
        first, last, begin, end = _borders(input.shape[dim], before, after, mode)
        shape, parts = input.shape, [input[(*(slice(None),) * dim, slice(begin, end))]]
        for index, at in ((first, 0), (last, 1 + (first is not None))):
            if index is not None:
                border = (*shape[:dim], index.size, *shape[dim + 1 :])
                parts.insert(at, blocks.read("indexed_pad", input, dim, (index,), border))
        output = empty((*shape[:dim], shape[dim] + before + after, *shape[dim + 1 :]), input.dtype)
        if status := lib.cat([id(part) for part in parts], len(parts), dim, id(output)):
            fail("indexed_pad", status)
        return output

    def indexed_pad(input, pad, mode):
        shape_rule("indexed_pad")(input.shape, pad, mode)
        if not any(pad):
            return copied(lib, input)
        input = dense(input)
        for i in range(len(pad) // 2):
            before, after = pad[2 * i], pad[2 * i + 1]
            if before or after:
                input = extended(input, input.ndim - 1 - i, before, after, mode)
        return input

    return [Kernel("constant_pad_nd", constant_pad_nd), Kernel("indexed_pad", indexed_pad)]
