"""What indexing, scattering and embedding share: the array to change, and what was wrong with positions."""

import numpy as np

from corefw import dtypes
from corefw_c.arrays import empty
from corefw_c.library import OUT_OF_RANGE, UNSUPPORTED, WRONG_DTYPE, fail

HALF = frozenset({dtypes.float16.numpy, dtypes.bfloat16.numpy})


def checked(index):
    """An index array, which may come from anywhere, as one that kernels can read: no subclass, of no other device."""
    if index.__class__ is np.ndarray:
        return index
    if isinstance(index, np.ndarray):
        return index.view(np.ndarray)
    raise TypeError(f"positions in a {type(index).__name__}")


def copied(lib, array):
    """A copy in row-major order."""
    if array.nbytes < lib.SMALL:
        return array.copy("C")
    result = empty(array.shape, array.dtype)
    if status := lib.copy(id(array), id(result)):
        fail("copy", status)
    return result


def changed(lib, input, out):
    """The array to change: `out`, holding the input's elements, or a copy of the input."""
    if out is None:
        return copied(lib, input)
    if out is not input:
        np.copyto(out, input)
    return out


def explain(op, status, shape, dim, indices, from_end):
    """Raise what a status other than 0 of a kernel with positions from dimension `dim` on means."""
    if status == WRONG_DTYPE and any(index.dtype.kind != "i" or index.dtype.itemsize < 4 for index in indices):
        raise IndexError("Expected dtype int32/int64 for index")
    if status == OUT_OF_RANGE:
        for size, (i, index) in zip(shape[dim:], enumerate(indices, dim), strict=False):
            wrong = index[(index < (-size if from_end else 0)) | (index >= size)]
            if wrong.size:
                raise IndexError(f"index {wrong.flat[0]} is out of bounds for dimension {i} with size {size}")
    fail(op, status)


class Blocks:
    """Reading, writing and adding of blocks at positions of neighbouring dimensions, over a library."""

    def __init__(self, lib):
        self.lib = lib

    def read(self, op, input, dim, indices, shape, from_end=False):
        """The blocks of `input` at the positions, of shape `shape` together."""
        output = empty(shape, input.dtype)
        given = together(indices)
        status = self.lib.index_read(id(input), dim, id(given), len(indices), from_end, id(output))
        if status == UNSUPPORTED:
            input = copied(self.lib, input)
            status = self.lib.index_read(id(input), dim, id(given), len(indices), from_end, id(output))
        if status:
            explain(op, status, input.shape, dim, indices, from_end)
        return output

    def write(self, op, target, dim, indices, values, from_end=False, add=False):
        """Write `values`, contiguous or one element, to the blocks of `target` at the positions, or add them there."""
        kernel = self.lib.index_sum if add else self.lib.index_write
        given = together(indices)
        status = kernel(id(target), dim, id(given), len(indices), from_end, id(values))
        if status == UNSUPPORTED:
            with Substitute(self.lib, target) as part:
                values = part.like(values)
                status = kernel(id(part.array), dim, id(given), len(indices), from_end, id(values))
        if status:
            explain(op, status, target.shape, dim, indices, from_end)


def together(indices):
    """Index arrays as the kernels take them: one as it is, of several the array of their addresses."""
    if len(indices) == 1:
        return checked(indices[0])
    return np.array([id(checked(index)) for index in indices], np.uint64)


class Substitute:
    """A contiguous copy of an array, written to instead of it and copied back; of half types in float32 if `wide`."""

    def __init__(self, lib, array, wide=False):
        self.lib = lib
        self.target = array
        self.dtype = dtypes.float32.numpy if wide and array.dtype in HALF else array.dtype
        self.array = self.like(array)

    def like(self, array):
        """A contiguous copy of `array` of the same element type as the substitute."""
        result = empty(array.shape, self.dtype)
        if status := self.lib.copy(id(array), id(result)):
            fail("copy", status)
        return result

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if error is None and (status := self.lib.copy(id(self.array), id(self.target))):
            fail("copy", status)
