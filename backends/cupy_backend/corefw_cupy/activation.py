"""Activations along a dimension; the elementwise ones are formulas (elementwise.py)."""

from __future__ import annotations

from corefw import shapes
from corefw.dispatch.backend import Kernel
from corefw_cupy.cuda import Cuda
from corefw_cupy.launch import FLOATS, offered
from corefw_cupy.rows import ITEMS, ITEMS_OF_TWO, MOST_THREADS, along, columns, distribute, expanded, split


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""

    def computing(suffix: str, sums: int, items: dict[int, str]):
        """What computes an array of the shape of dense ones: `sums` numbers belong to a part of a long row."""
        by_rows = cuda.function("softmax/softmax_rows.cu", f"softmax_rows{suffix}", T=FLOATS, ITEMS=items)
        by_parts = cuda.function("softmax/softmax_long.cu", f"softmax_long{suffix}", T=FLOATS)
        by_columns = cuda.function("softmax/softmax_columns.cu", f"softmax_columns{suffix}", T=FLOATS)
        most = max(items)

        def compute(arrays, dim, logarithm):
            shape, dtype = arrays[0].shape, arrays[0].dtype
            result = cuda.empty(shape, dtype)
            if result.size == 0:
                return result
            outer, n, inner = along(shape, dim)
            if inner > 1:
                width, tiles, grid, block = columns(outer, n, inner)
                by_columns[dtype](grid, block, (*arrays, result, n, inner, width, tiles, logarithm))
            elif held := distribute(n, outer, most):
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

    forward = computing("", 2, ITEMS)
    backward = computing("_backward", 1, ITEMS_OF_TWO)

    def softmax(input, dim):
        return forward((cuda.dense(input),), dim, False)

    def log_softmax(input, dim):
        return forward((cuda.dense(input),), dim, True)

    def alike(grad, output):
        """Both broadcast with each other, dense."""
        shape = output.shape if grad.shape == output.shape else shapes.broadcast(grad.shape, output.shape)
        return expanded(cuda, grad, shape), expanded(cuda, output, shape)

    def softmax_backward(grad, output, dim):
        return backward(alike(grad, output), dim, False)

    def log_softmax_backward(grad, output, dim):
        return backward(alike(grad, output), dim, True)

    return [
        Kernel("log_softmax", log_softmax, offered(FLOATS)),
        Kernel("log_softmax_backward", log_softmax_backward, offered(FLOATS)),
        Kernel("softmax", softmax, offered(FLOATS)),
        Kernel("softmax_backward", softmax_backward, offered(FLOATS)),
    ]
