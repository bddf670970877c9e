"""Losses of probabilities, elementwise."""

from __future__ import annotations

from corefw.dispatch.backend import Kernel
from corefw_cupy.cuda import Cuda
from corefw_cupy.launch import FLOATS, offered
from corefw_cupy.pointwise_function import Pointwise

FORMULAS = {
    "bernoulli_nll": (
        "p = x >= 0 && x <= 1 ? x : (report(device_asserts, kind, 0, 0, 0), T(0.5)); "
        "(y - 1) * fmax(log1p(-p), T(-100)) - y * fmax(log(p), T(-100))"
    ),
    "logistic_loss": "(x < 0 ? T(0) : x) - x * y + log1p(exp(-fabs(x)))",
}


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""
    outside = cuda.device_asserts.kind("all elements of input should be between 0 and 1", RuntimeError)

    def kernel(op, fault=0):
        made = Pointwise(cuda, op, ("T", "T"), 0, "double", "T", FORMULAS[op], {"T": FLOATS}, fault)

        def function(input, target):
            return made((input.dtype,), input.dtype, (input, target))

        return Kernel(op, function, offered(FLOATS))

    return [kernel("bernoulli_nll", outside), kernel("logistic_loss")]
