"""Products of sparse matrices in compressed rows with dense ones."""

from corefw.dispatch.backend import Kernel
from corefw.dispatch.registry import shape_rule
from corefw_c.arrays import FLOATS, dense, empty
from corefw_c.library import OUT_OF_RANGE, fail
from corefw_c.positions import checked


def _kernel(op, compute):
    def kernel(first, second, crow, col, *attributes):
        shape = shape_rule(op)(first.shape, second.shape, crow.shape, col.shape, *attributes)
        first, second = dense(first), dense(second)
        crow, col = dense(checked(crow)), dense(checked(col))
        output = empty(shape, first.dtype)
        status = compute(id(first), id(second), id(crow), id(col), id(output))
        if status == OUT_OF_RANGE:
            raise IndexError(f"{op}: an index is out of bounds of the sparse matrix of {crow.size - 1} rows")
        if status:
            fail(op, status)
        return output

    return Kernel(op, kernel, FLOATS)


def kernels(lib):
    """The family's kernels."""
    names = ("csr_matmul", "csr_sampled_matmul", "csr_transposed_matmul")
    return [_kernel(name, getattr(lib, name)) for name in names]
