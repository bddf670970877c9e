"""Losses of probabilities, elementwise."""

from corefw.dispatch.backend import Kernel
from corefw_c.arrays import FLOATS, empty
from corefw_c.library import OUT_OF_RANGE, fail
from corefw_c.loss import alike


def kernels(lib):
    """The family's kernels."""

    def bernoulli_nll(input, target):
        input, target = alike(input, target)
        loss = empty(input.shape, input.dtype)
        if status := lib.bernoulli_nll(id(input), id(target), id(loss)):
            if status == OUT_OF_RANGE:
                raise RuntimeError("all elements of input should be between 0 and 1")
            fail("bernoulli_nll", status)
        return loss

    def logistic_loss(input, target):
        input, target = alike(input, target)
        loss = empty(input.shape, input.dtype)
        if status := lib.logistic_loss(id(input), id(target), id(loss)):
            fail("logistic_loss", status)
        return loss

    return [Kernel("bernoulli_nll", bernoulli_nll, FLOATS), Kernel("logistic_loss", logistic_loss, FLOATS)]
