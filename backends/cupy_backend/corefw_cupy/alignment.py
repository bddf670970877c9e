"""The loss of labels whose places in time are not known: a block has a sample, whose times follow each other."""

from __future__ import annotations

import numpy as np

from corefw.dispatch.backend import Kernel
from corefw_cupy.cuda import Cuda
from corefw_cupy.launch import REALS, THREADS, offered
from corefw_cupy.rows import MOST_THREADS, WARP

INT64 = np.dtype(np.int64)


def threads_of(states: int) -> int:
    """The threads of a block that walks over so many states."""
    return min(MOST_THREADS, -(-states // WARP) * WARP)


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""
    missing = cuda.device_asserts.kind("ctc_loss: label {0} is out of bounds for {1} classes.")
    device_asserts = (cuda.device_asserts.address, missing)
    costs = cuda.function("loss/alignment.cu", "ctc_costs", T=REALS)
    shares = cuda.function("loss/alignment.cu", "ctc_shares", T=REALS)
    gradient = cuda.function("loss/alignment.cu", "ctc_gradient", T=REALS)

    def checked(log_probs, targets, input_lengths, target_lengths, blank):
        """The arrays dense, and their sizes."""
        times, samples, classes = log_probs.shape
        if targets.shape[:-1] != (samples,) or input_lengths.shape != (samples,) or target_lengths.shape != (samples,):
            raise ValueError("one target and two lengths per sample expected")
        if not 0 <= blank < classes:
            raise ValueError("a blank among the classes expected")
        labels = targets.shape[1]
        integers = (
            a if a.dtype == INT64 else cuda.copying.cast(a, INT64) for a in (targets, input_lengths, target_lengths)
        )
        return map(cuda.dense, (log_probs, *integers)), (times, samples, classes, labels), 2 * labels + 1

    def ctc_costs(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
        arrays, sizes, states = checked(log_probs, targets, input_lengths, target_lengths, blank)
        dtype, samples = log_probs.dtype, sizes[1]
        losses, rows = cuda.empty((samples,), dtype), cuda.empty((samples, 2, states), dtype)
        if samples:
            arguments = (*arrays, losses, rows, *sizes, blank, zero_infinity, *device_asserts)
            costs[dtype]((samples,), (threads_of(states),), arguments)
        return losses

    def ctc_costs_backward(grad, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
        arrays, sizes, states = checked(log_probs, targets, input_lengths, target_lengths, blank)
        dtype, (times, samples, *_) = log_probs.dtype, sizes
        if grad.shape != (samples,):
            raise ValueError("a gradient per sample expected")
        result = cuda.empty(log_probs.shape, dtype)
        if not result.size:
            return result
        log_probs, *labels = arrays
        totals, rows = cuda.empty((samples,), dtype), cuda.empty((samples, times + 3, states), dtype)
        arguments = (log_probs, *labels, totals, rows, *sizes, blank, *device_asserts)
        shares[dtype]((samples,), (threads_of(states),), arguments)
        arguments = (cuda.dense(grad), log_probs, *labels, totals, rows, result, *sizes, blank, zero_infinity)
        gradient[dtype]((times * samples,), (THREADS,), arguments)
        return result

    return [Kernel(function.__name__, function, offered(REALS)) for function in (ctc_costs, ctc_costs_backward)]
