"""The device `strict`: array-api-strict, which has the functions of the array API standard and not one more.

Its arrays are taken as immutable: strides, views and in-place changes are corefw's.
"""

from dataclasses import replace

import array_api_strict as xp
import numpy as np
import pluggy

from corefw import dtypes
from corefw.dispatch.backend import Backend
from corefw.dispatch.functional import FunctionalRuntime
from corefw.dispatch.functional_memory import memory_kernels

FLOATS = frozenset({dtypes.float32, dtypes.float64})
NUMBERS = FLOATS | {dtypes.uint8, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64}
INEXACT = FLOATS | {dtypes.complex64, dtypes.complex128}
STORED = NUMBERS | INEXACT | {dtypes.bool_}


class StrictRuntime(FunctionalRuntime):
    """The memory of `strict`. The standard has no half types, so the device refuses them."""

    device_type = "strict"
    dtypes = STORED


def total(input, dim, keepdim):
    """The sum over the dimensions `dim`, all for None."""
    return xp.sum(input, axis=dim, keepdims=keepdim)


def mean(input, dim, keepdim):
    """The mean over the dimensions `dim`, all for None."""
    summed = xp.sum(input, axis=dim, keepdims=keepdim)
    return summed / (input.size / summed.size if summed.size else 1.0)  # NaN for none: NumPy's mean would warn


def largest(input, dim, keepdim):
    """The largest element along the dimensions `dim`, all for None."""
    return xp.max(input, axis=dim, keepdims=keepdim)


def smallest(input, dim, keepdim):
    """The smallest element along the dimensions `dim`, all for None."""
    return xp.min(input, axis=dim, keepdims=keepdim)


def every(input, dim, keepdim):
    """Whether all elements along the dimensions `dim` are true."""
    return xp.all(input, axis=dim, keepdims=keepdim)


def some(input, dim, keepdim):
    """Whether any element along the dimensions `dim` is true."""
    return xp.any(input, axis=dim, keepdims=keepdim)


def matmul_adjoint(input, other):
    """input @ other.mT: the gradient of the left factor."""
    return xp.matmul(input, xp.matrix_transpose(other))


def adjoint_matmul(input, other):
    """input.mT @ other: the gradient of the right factor."""
    return xp.matmul(xp.matrix_transpose(input), other)


def choose(condition, input, other):
    """Elements of `input` where `condition` is true, else of `other`."""
    return xp.where(condition, input, other)


def cat(tensors, dim):
    """The arrays one after the other; those of shape (0,) fit to all others."""
    fitting = [array for array in tensors if array.shape != (0,)] or tensors
    return xp.concat(fitting, axis=dim)


def sgd_step(params, grads, buffers, lr, momentum, dampening, weight_decay, nesterov, first, maximize):
    """Stochastic gradient descent: the new parameters and momentum buffers."""
    steps = [(-grad if maximize else grad) + weight_decay * param for param, grad in zip(params, grads)]
    if momentum:
        buffers = steps if first else [momentum * b + (1 - dampening) * step for step, b in zip(steps, buffers)]
        steps = [step + momentum * b if nesterov else b for step, b in zip(steps, buffers)]
    return [param - lr * step for param, step in zip(params, steps)], buffers


#: the kernels, by the dtypes that they are claimed for: {op: function of arrays}
ELEMENTWISE = {
    "acos": xp.acos,
    "acosh": xp.acosh,
    "asin": xp.asin,
    "asinh": xp.asinh,
    "atan": xp.atan,
    "atan2": xp.atan2,
    "atanh": xp.atanh,
    "ceil": xp.ceil,
    "copysign": xp.copysign,
    "cos": xp.cos,
    "cosh": xp.cosh,
    "div": xp.divide,
    "exp": xp.exp,
    "expm1": xp.expm1,
    "floor": xp.floor,
    "hypot": xp.hypot,
    "isfinite": xp.isfinite,
    "isinf": xp.isinf,
    "isnan": xp.isnan,
    "log": xp.log,
    "log10": xp.log10,
    "log1p": xp.log1p,
    "log2": xp.log2,
    "reciprocal": xp.reciprocal,
    "signbit": xp.signbit,
    "sin": xp.sin,
    "sinh": xp.sinh,
    "sqrt": xp.sqrt,
    "tan": xp.tan,
    "tanh": xp.tanh,
    "trunc": xp.trunc,
    "mean": mean,
    "matmul": xp.matmul,
    "matmul_adjoint": matmul_adjoint,
    "adjoint_matmul": adjoint_matmul,
    "sgd_step": sgd_step,
}
OF_NUMBERS = {
    "abs": xp.abs,
    "add": xp.add,
    "amax": largest,
    "amin": smallest,
    "eq": xp.equal,
    "ge": xp.greater_equal,
    "gt": xp.greater,
    "le": xp.less_equal,
    "lt": xp.less,
    "maximum": xp.maximum,
    "minimum": xp.minimum,
    "mul": xp.multiply,
    "ne": xp.not_equal,
    "sub": xp.subtract,
    "square": xp.square,
}
OF_INEXACT = {"sum": total}
OF_SIGNED = {"neg": xp.negative}
OF_TRUTH = {
    "all": every,
    "any": some,
    "logical_and": xp.logical_and,
    "logical_not": xp.logical_not,
    "logical_or": xp.logical_or,
    "logical_xor": xp.logical_xor,
}
OF_ALL = {
    "cat": cat,
    "choose": choose,
    "flip": lambda input, dims: xp.flip(input, axis=dims),
    "stack": lambda tensors, dim: xp.stack(tensors, axis=dim),
    "tril": lambda input, diagonal: xp.tril(input, k=diagonal),
    "triu": lambda input, diagonal: xp.triu(input, k=diagonal),
}


@pluggy.HookimplMarker("corefw")
def corefw_backend() -> Backend:
    """What the package offers."""
    runtime = StrictRuntime(xp)
    claims = [
        (ELEMENTWISE, FLOATS),
        (OF_NUMBERS, NUMBERS),
        (OF_INEXACT, INEXACT),
        (OF_SIGNED, NUMBERS - {dtypes.uint8}),
    ]
    claims += [(OF_TRUTH, {dtypes.bool_}), (OF_ALL, STORED)]
    kernels = memory_kernels(runtime)
    kernels += [runtime.kernel(op, function, taken) for ops, taken in claims for op, function in ops.items()]
    quiet = np.errstate(all="ignore")  # it computes with NumPy, and NaN and infinities tell what NumPy would warn of
    return Backend(
        name="strict",
        version="0.1.0",
        devices=("strict",),
        kernels={"strict": [replace(kernel, function=quiet(kernel.function)) for kernel in kernels]},
        runtimes={"strict": runtime},
    )
