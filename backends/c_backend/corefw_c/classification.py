"""Losses of class indices."""

import numpy as np

from corefw.dispatch.backend import Kernel
from corefw_c.arrays import FLOATS, LOSS_REDUCTIONS, dense, empty, of_statistics
from corefw_c.library import OUT_OF_RANGE, fail


def kernels(lib):
    """The family's kernels."""

    def indices(target):
        return dense(target if target.dtype == np.int64 else target.astype(np.int64))

    def refuse(op, status, target, classes, ignore_index):
        if status == OUT_OF_RANGE:
            wrong = target[(target != ignore_index) & ((target < 0) | (target >= classes))]
            raise IndexError(f"Target {wrong[0]} is out of bounds for {classes} classes.")
        fail(op, status)

    def count(shape):
        return shape[len(shape) > 1]

    def class_nll(input, target, ignore_index, reduction, weight):
        input, target = dense(input), indices(target)
        weight = None if weight is None else dense(weight)
        loss = empty(target.shape if reduction == "none" else (), input.dtype)
        weighing = 0 if weight is None else id(weight)
        if status := lib.class_nll(id(input), id(target), weighing, ignore_index, LOSS_REDUCTIONS[reduction], id(loss)):
            refuse("class_nll", status, target, count(input.shape), ignore_index)
        return loss

    def class_nll_backward(grad, target, shape, ignore_index, reduction, weight):
        grad, target = dense(grad), indices(target)
        weight = None if weight is None else dense(weight)
        result = empty(shape, grad.dtype)
        weighing = 0 if weight is None else id(weight)
        if status := lib.class_nll_backward(
            id(grad), id(target), weighing, ignore_index, LOSS_REDUCTIONS[reduction], id(result)
        ):
            refuse("class_nll_backward", status, target, count(shape), ignore_index)
        return result

    def class_cross_entropy(input, target, ignore_index, reduction):
        input, target = dense(input), indices(target)
        samples = target.shape
        loss = empty(samples if reduction == "none" else (), input.dtype)
        normalizer = empty((2,) + samples, of_statistics(input.dtype))  # unpacking takes twice as long
        if status := lib.class_cross_entropy(
            id(input), id(target), ignore_index, LOSS_REDUCTIONS[reduction], id(loss), id(normalizer)
        ):
            refuse("class_cross_entropy", status, target, count(input.shape), ignore_index)
        return loss, normalizer

    def class_cross_entropy_backward(grad, input, normalizer, target, ignore_index, reduction):
        grad, input, normalizer, target = dense(grad), dense(input), dense(normalizer), indices(target)
        result = empty(input.shape, input.dtype)
        if status := lib.class_cross_entropy_backward(
            id(grad), id(input), id(normalizer), id(target), ignore_index, LOSS_REDUCTIONS[reduction], id(result)
        ):
            refuse("class_cross_entropy_backward", status, target, count(input.shape), ignore_index)
        return result

    functions = class_cross_entropy, class_cross_entropy_backward, class_nll, class_nll_backward
    return [Kernel(function.__name__, function, FLOATS) for function in functions]
