"""Gathering and scattering along a dimension, and by positions in the flattened array."""

from __future__ import annotations

from corefw.dispatch.registry import Kernel
from corefw_cupy.cuda import Cuda
from corefw_cupy.positions import along_elements, along_slices, positions


def line(array):
    """0-d arrays as vectors of one element."""
    return array if array.ndim else array.reshape(1)


def vector(index):
    """Positions of slices, refused if they are not in one dimension."""
    if index.ndim > 1:
        raise ValueError("the index has more than one dimension")
    return line(index)


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""
    at = positions(cuda)
    select_bounds, gather_bounds = (cuda.faults.out_of_bounds(op) for op in ("index_select", "gather"))

    def index_select(input, dim, index):
        index, array = vector(index), line(input)
        found = at.read(array, along_slices(array, dim, index), index, select_bounds)
        return found if input.ndim else found.reshape(())

    def gather(input, dim, index):
        if not index.size:
            return cuda.empty(index.shape, input.dtype)
        array, where = line(input), line(index)
        return at.read(array, along_elements(array, dim, where), where, gather_bounds).reshape(index.shape)

    return [Kernel("gather", gather), Kernel("index_select", index_select)]
