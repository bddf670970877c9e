"""Losses of classes, each in one step forward and one backward."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from corefw.dispatch.backend import Kernel
from corefw_cupy.cuda import Cuda
from corefw_cupy.launch import FLOATS, STATISTIC, THREADS, blocks, offered
from corefw_cupy.loss import blocks_of_sum, summing
from corefw_cupy.rows import MANY, MOST_THREADS, SPAN, WARP, along, columns, power_of_two

INT64 = np.dtype(np.int64)
MOST_WEIGHT_BLOCKS = 32
FEW_READS = 1 << 18  # of targets, which all blocks of a gradient do to sum their weights: above, a launch does it once


def class_dim(shape: tuple[int, ...]) -> int:
    """The dimension of the classes."""
    return 0 if len(shape) == 1 else 1


@lru_cache(maxsize=4096)
def scanning(samples: int, classes: int) -> tuple[int, int]:
    """(lanes of a row, threads of a block) that read all classes of a sample."""
    if classes <= 8 * WARP or (classes <= 32 * WARP and samples >= MANY):
        return min(WARP, power_of_two(-(-classes // 4))), THREADS
    return (THREADS,) * 2 if classes <= 32 * THREADS else (MOST_THREADS,) * 2


@lru_cache(maxsize=4096)
def writing(samples: int, classes: int) -> tuple[int, int, int]:
    """(lanes of a row, parts of a row, elements of a part) that write gradients of all classes."""
    if classes <= 8 * WARP:
        return min(WARP, power_of_two(-(-classes // 4))), 1, classes
    parts = -(-classes // SPAN)
    return THREADS, parts, SPAN if parts > 1 else classes


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""
    summed = summing(cuda)
    missing = cuda.device_asserts.kind("Target {0} is out of bounds for {1} classes.")
    device_asserts = (cuda.device_asserts.address, missing)
    nll = cuda.function("loss/class_nll.cu", "class_nll", T=FLOATS)
    weight_sums = cuda.function("loss/class_nll.cu", "class_weights", T=FLOATS)
    entropy_of_rows = cuda.function("loss/cross_entropy.cu", "cross_entropy_rows", T=FLOATS)
    entropy_of_columns = cuda.function("loss/cross_entropy.cu", "cross_entropy_columns", T=FLOATS)
    gradient_of_rows = cuda.function("loss/class_gradient.cu", "class_gradient_rows", T=FLOATS)
    gradient_of_columns = cuda.function("loss/class_gradient.cu", "class_gradient_columns", T=FLOATS)

    def indices(target, shape):
        """The classes as dense int64, for scores of `shape`."""
        dim = class_dim(shape)
        if not shape:
            raise ValueError("scores of at least one dimension expected")
        if target.shape != shape[:dim] + shape[dim + 1 :]:
            raise ValueError("one class per sample expected")
        return cuda.dense(target if target.dtype == INT64 else cuda.copying.cast(target, INT64))

    def weights_of(weight, classes):
        """The classes' weights, dense, or no array."""
        if weight is None:
            return 0
        if weight.shape != (classes,):
            raise ValueError("one weight per class expected")
        return cuda.dense(weight)

    def reduced(launch, grid, threads, before, shape, dtype, after, reduction):
        """Losses of `shape`, as they are or reduced: `before` and `after` are the kernel's arguments around them."""
        if reduction != "none":
            mean = reduction == "mean"
            return summed(
                launch, grid, threads, (before[0], 0, *before[1:]), dtype, (*after, mean, *device_asserts), mean
            )
        losses = cuda.empty(shape, dtype)
        if losses.size:
            launch((grid,), (threads,), (before[0], losses, *before[1:], 0, 0, *after, False, *device_asserts))
        return losses

    def class_nll(input, target, ignore_index, reduction, weight):
        target, input, dtype = indices(target, input.shape), cuda.dense(input), input.dtype
        _, classes, inner = along(input.shape, class_dim(input.shape))
        weight, samples = weights_of(weight, classes), target.size
        most = blocks(samples)[0]
        grid = most if reduction == "none" else blocks_of_sum(8 * samples, most)
        after = samples, classes, inner, ignore_index
        return reduced(nll[dtype], grid, THREADS, (input, target, weight), target.shape, dtype, after, reduction)

    def class_cross_entropy(input, target, ignore_index, reduction):
        target, input, dtype = indices(target, input.shape), cuda.dense(input), input.dtype
        outer, classes, inner = along(input.shape, class_dim(input.shape))
        if not classes and target.size:
            raise ValueError("scores of at least one class expected")
        normalizer = cuda.empty((2, *target.shape), STATISTIC[dtype])
        if inner == 1:
            lanes, threads = scanning(outer, classes)
            launch, most = entropy_of_rows[dtype], -(-outer * lanes // threads)
            geometry: tuple = (outer, classes, lanes)
        else:
            width, tiles, (most,), (threads,) = columns(outer, classes, inner)
            launch, geometry = entropy_of_columns[dtype], (outer, classes, inner, width, tiles)
        grid = most if reduction == "none" else blocks_of_sum(input.size, most)
        before, after = (input, target, normalizer), (*geometry, ignore_index)
        return reduced(launch, grid, threads, before, target.shape, dtype, after, reduction), normalizer

    def gradient(grad, input, normalizer, target, shape, ignore_index, reduction, weight):
        """The gradient of either loss: without scores that of the negative log-likelihood."""
        target = indices(target, shape)
        if grad.shape != (target.shape if reduction == "none" else ()):
            raise ValueError("a gradient of the loss's shape expected")
        grad, dtype, each = cuda.dense(grad), grad.dtype, reduction == "none"
        result = cuda.empty(shape, dtype)
        if not result.size:
            return result
        outer, classes, inner = along(shape, class_dim(shape))
        if inner == 1:
            lanes, parts, length = writing(outer, classes)
            launch, grid = gradient_of_rows[dtype], blocks(outer * parts * lanes)
            sizes: tuple = (outer, classes, lanes, parts, length)
        else:
            launch, grid, sizes = gradient_of_columns[dtype], blocks(result.size), (result.size, classes, inner)
        weight, mean, sums, count = weights_of(weight, classes), reduction == "mean", 0, 0
        if mean and grid[0] * target.size > FEW_READS:
            count = min(MOST_WEIGHT_BLOCKS, blocks(target.size, 8 * MOST_THREADS)[0])
            sums = cuda.empty((count,), "f8")
            arguments = (target, weight, sums, target.size, classes, ignore_index)
            weight_sums[dtype]((count,), (MOST_THREADS,), arguments)
        arrays = (grad, input, normalizer, target, weight, sums, result)
        launch(grid, (THREADS,), (*arrays, *sizes, count, ignore_index, each, mean, *device_asserts))
        return result

    def class_nll_backward(grad, target, shape, ignore_index, reduction, weight):
        return gradient(grad, 0, 0, target, shape, ignore_index, reduction, weight)

    def class_cross_entropy_backward(grad, input, normalizer, target, ignore_index, reduction):
        statistic = STATISTIC[input.dtype]
        if normalizer.shape != (2, *target.shape):
            raise ValueError("two numbers per sample expected")
        if normalizer.dtype != statistic:
            normalizer = cuda.copying.cast(normalizer, statistic)
        input, normalizer = cuda.dense(input), cuda.dense(normalizer)
        return gradient(grad, input, normalizer, target, input.shape, ignore_index, reduction, None)

    return [
        Kernel("class_cross_entropy", class_cross_entropy, offered(FLOATS)),
        Kernel("class_cross_entropy_backward", class_cross_entropy_backward, offered(FLOATS)),
        Kernel("class_nll", class_nll, offered(FLOATS)),
        Kernel("class_nll_backward", class_nll_backward, offered(FLOATS)),
    ]
