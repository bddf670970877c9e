"""Squared differences, and the sums of losses that several families share."""

from __future__ import annotations

from corefw import shapes
from corefw.dispatch.backend import Kernel
from corefw_cupy.cuda import Cuda
from corefw_cupy.launch import FLOATS, THREADS, offered
from corefw_cupy.pointwise_function import Pointwise
from corefw_cupy.rows import MANY, MOST_THREADS, expanded

SINGLE = 1 << 14  # elements whose loss one block sums


def blocks_of_sum(elements: int, most: int) -> int:
    """How many blocks sum losses that take so many elements, if `most` would have work: only one for a few."""
    return 1 if elements <= SINGLE else max(1, min(most, MANY))


def summing(cuda: Cuda):
    """What launches a kernel that sums losses in blocks, and then sums those of the blocks."""
    total_loss = cuda.function("loss/losses.cu", "total_loss", T=FLOATS)

    def summed(launch, blocks, threads, before, dtype, after, mean):
        """The loss: `before` and `after` are the kernel's arguments beside (sums of blocks, result)."""
        result = cuda.empty((), dtype)
        of_blocks = cuda.empty((blocks, 2), "f8") if blocks > 1 else 0
        launch((blocks,), (threads,), (*before, of_blocks, result, *after))
        if blocks > 1:
            total_loss[dtype]((1,), (MOST_THREADS,), (of_blocks, result, blocks, mean))
        return result

    return summed


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""
    summed = summing(cuda)
    error_sum = cuda.function("loss/losses.cu", "squared_error_sum", T=FLOATS)
    macros = {"T": FLOATS}
    error = Pointwise(cuda, "squared_error", ("T", "T"), 0, "double", "T", "d = x - y; d * d", macros)
    gradient = Pointwise(cuda, "squared_error_gradient", ("T", "T", "T"), 1, "double", "T", "(y - z) * (x * s)", macros)

    def squared_error(input, target, reduction):
        dtype = input.dtype
        if reduction == "none":
            return error((dtype,), dtype, (input, target))
        shape = input.shape if input.shape == target.shape else shapes.broadcast(input.shape, target.shape)
        input, target = expanded(cuda, input, shape), expanded(cuda, target, shape)
        n, mean = input.size, reduction == "mean"
        blocks = blocks_of_sum(n, n // (4 * THREADS))
        return summed(error_sum[dtype], blocks, THREADS, (input, target), dtype, (n, mean), mean)

    def squared_error_backward(grad, input, target, reduction):
        shape = input.shape if input.shape == target.shape else shapes.broadcast(input.shape, target.shape)
        if grad.ndim and shapes.broadcast(grad.shape, shape) != shape:
            raise ValueError("a gradient that broadcasts to the differences expected")
        n = 1
        if reduction == "mean":
            for size in shape:
                n *= size
        return gradient((grad.dtype,), grad.dtype, (grad, input, target), (2.0 / max(n, 1),))

    return [
        Kernel("squared_error", squared_error, offered(FLOATS)),
        Kernel("squared_error_backward", squared_error_backward, offered(FLOATS)),
    ]
