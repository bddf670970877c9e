"""Activations along a dimension; the elementwise ones are formulas (elementwise.py)."""

from __future__ import annotations

from corefw import shapes
from corefw.dispatch.registry import Kernel
from corefw_cupy.cuda import Cuda
from corefw_cupy.launch import FLOATS, offered
from corefw_cupy.rows import ITEMS, MOST_THREADS, along, columns, expanded, share, split


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""

    def computing(suffix: str, logarithm: bool, sums: int, most: int):
        """What computes an array of the shape of dense ones: `sums` numbers belong to a part of a long row, and
        threads hold at most `most` elements of each array."""
        by_rows = cuda.function("softmax_rows.cu", f"softmax_rows{suffix}", T=FLOATS, ITEMS=ITEMS)
        by_parts = cuda.function("softmax_long.cu", f"softmax_long{suffix}", T=FLOATS)
        by_columns = cuda.function("softmax_columns.cu", f"softmax_columns{suffix}", T=FLOATS)

        def compute(dim, *arrays):
            shape, dtype = arrays[0].shape, arrays[0].dtype
            result = cuda.empty(shape, dtype)
            if result.size == 0:
                return result
            outer, n, inner = along(shape, dim)
            if inner > 1:
                width, tiles, grid, block = columns(outer, n, inner)
                by_columns[dtype](grid, block, (*arrays, result, n, inner, width, tiles, logarithm))
            elif held := share(n, outer, most):
                launch = by_rows[dtype, held.items]
                launch(held.grid, held.block, (*arrays, result, outer, n, held.lanes, logarithm))
            else:
                launch, (parts, length) = by_parts[dtype], split(n, outer)
                grid, block = (outer * parts,), (MOST_THREADS,)
                if parts == 1:
                    launch(grid, block, (*arrays, 0, result, n, parts, length, logarithm))
                else:
                    partial = cuda.empty((outer, parts, sums), "f8")  # of the type of computation, or wider
                    launch(grid, block, (*arrays, partial, 0, n, parts, length, logarithm))
                    launch(grid, block, (*arrays, partial, result, n, parts, length, logarithm))
            return result

        return compute

    def forward(op, logarithm):
        compute = computing("", logarithm, 2, 32)

        def kernel(input, dim):
            return compute(dim, cuda.dense(input))

        return Kernel(op, kernel, offered(FLOATS))

    def backward(op, logarithm):
        compute = computing("_backward", logarithm, 1, 16)

        def kernel(grad, output, dim):
            shape = output.shape if grad.shape == output.shape else shapes.broadcast(grad.shape, output.shape)
            return compute(dim, expanded(cuda, grad, shape), expanded(cuda, output, shape))

        return Kernel(op, kernel, offered(FLOATS))

    return [
        forward("softmax", False),
        forward("log_softmax", True),
        backward("softmax_backward", False),
        backward("log_softmax_backward", True),
    ]
