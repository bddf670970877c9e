"""Activation functions."""

import math

import numpy as np

from corefw.testing.case import Case

REAL = ("float16", "bfloat16", "float32", "float64")
PAIRS = (((2, 3), (2, 3)), ((), ()), ((0, 3), (0, 3)))
ALONG = (((2, 3),), ((),), ((0, 3),), ((5,),), ((2, 3, 2),))
DIMS = ({"dim": 0}, {"dim": -1})
erf = np.vectorize(math.erf, otypes=[np.float64])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x, beta=1.0, threshold=20.0):
    return np.where(x * beta > threshold, x, np.log1p(np.exp(x * beta)) / beta)


def hardtanh(x, min_val=-1.0, max_val=1.0):
    return np.clip(x, min_val, max_val).astype(x.dtype)


def elu(x, alpha=1.0, scale=1.0, input_scale=1.0):
    return scale * np.where(x > 0, x, alpha * np.expm1(input_scale * x))


def elu_backward(grad, x, alpha, scale, input_scale):
    return grad * scale * np.where(x > 0, 1, alpha * input_scale * np.exp(input_scale * x))


def selu(x):
    return elu(x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946)


def celu(x, alpha=1.0):
    return elu(x, alpha, input_scale=1 / alpha)


def gelu(x, approximate="none"):
    if approximate == "none":
        return x * 0.5 * (1 + erf(x / math.sqrt(2)))
    return x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def gelu_backward(grad, x, approximate):
    if approximate == "none":
        slope = 0.5 * (1 + erf(x / math.sqrt(2))) + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    else:
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
        t = np.tanh(inner)
        slope = 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x**2)
    return grad * slope


def silu_backward(grad, x):
    s = sigmoid(x)
    return grad * np.conj(s + x * s * (1 - s))


def mish_backward(grad, x):
    t = np.tanh(softplus(x))
    return grad * (t + x * sigmoid(x) * (1 - t * t))


def hardswish(x):
    return x * np.clip(x + 3, 0, 6) / 6


def hardshrink(x, lambd=0.5):
    return np.where(np.abs(x) <= lambd, 0, x)


def softshrink(x, lambd=0.5):
    return np.where(np.isnan(x), x, np.where(x > lambd, x - lambd, np.where(x < -lambd, x + lambd, 0)))


def threshold(x, threshold, value):
    return np.where(x <= threshold, np.array(value).astype(x.dtype), x)


def prelu(x, weight):
    if weight.size > 1:
        weight = weight.reshape(-1, *(1,) * (x.ndim - 2))
    return np.where(x > 0, x, weight * x) if weight.size > 1 else np.where(x > 0, x, weight.reshape(()) * x)


def glu(x, dim=-1):
    a, b = np.split(x, 2, dim)
    return a * sigmoid(b)


def softmax(x, dim):
    if x.size == 0:
        return x
    e = np.exp(x - x.max(dim, keepdims=True))
    return e / e.sum(dim, keepdims=True)


def log_softmax(x, dim):
    if x.size == 0:
        return x
    shifted = x - x.max(dim, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(dim, keepdims=True))


def normalize(x, p=2.0, dim=1, eps=1e-12):
    return x / np.maximum((np.abs(x) ** p).sum(dim, keepdims=True) ** (1 / p), eps)


def one_hot_calls(rng, numpy_dtype):
    return [
        ([rng.integers(0, 4, (2, 3)).astype(numpy_dtype)], {"num_classes": 5}),
        ([np.array([2, 0, 1]).astype(numpy_dtype)], {}),
        ([np.zeros((0,), numpy_dtype)], {"num_classes": 3}),
        ([np.array(1).astype(numpy_dtype)], {"num_classes": -1}),
    ]


def one_hot(x, num_classes=-1):
    return np.eye(num_classes if num_classes > 0 else int(x.max()) + 1, dtype=np.int64)[x]


CASES = (
    Case("relu", lambda x: np.where(x <= 0, x.dtype.type(0), x)),
    Case("relu_backward", lambda g, out: np.where(out <= 0, g.dtype.type(0), g), shapes=PAIRS, constant=(1,)),
    Case("relu6", lambda x: np.clip(x, 0, 6), domain=(-3, 9)),
    Case(
        "hardtanh",
        hardtanh,
        attributes=({}, {"min_val": 0.0, "max_val": 2.0}),
        dtypes=("int8", "int64", *REAL),
    ),
    Case(
        "threshold",
        threshold,
        attributes=({"threshold": 1, "value": 2}, {"threshold": 0, "value": 0}),
    ),
    Case(
        "leaky_relu",
        lambda x, negative_slope=0.01: np.where(x > 0, x, negative_slope * x),
        attributes=({}, {"negative_slope": 0.5}),
    ),
    Case(
        "leaky_relu_backward",
        lambda g, x, negative_slope: np.where(x > 0, g, negative_slope * g),
        shapes=PAIRS,
        attributes=({"negative_slope": 0.5},),
        constant=(1,),
    ),
    Case(
        "prelu",
        prelu,
        shapes=(((2, 3), (3,)), ((2, 3), (1,)), ((4,), (1,)), ((2, 3, 2), (3,)), ((), (1,))),
        dtypes=REAL[2:],
        special=False,
    ),
    Case("prelu_elements", lambda x, w: np.where(x > 0, x, w * x), shapes=PAIRS),
    Case("hardsigmoid", lambda x: np.clip(x + 3, 0, 6) / 6, domain=(-4, 4)),
    Case("hardswish", hardswish, domain=(-4, 4)),
    Case("hardshrink", hardshrink, attributes=({}, {"lambd": 1.5})),
    Case("softshrink", softshrink, attributes=({}, {"lambd": 1.5})),
    Case("tanhshrink", lambda x: x - np.tanh(x)),
    Case("softsign", lambda x: x / (1 + np.abs(x))),
    Case("elu", elu, attributes=({}, {"alpha": 0.5})),
    Case(
        "elu_backward",
        elu_backward,
        shapes=PAIRS,
        attributes=({"alpha": 0.5, "scale": 2.0, "input_scale": 1.5},),
        special=False,
    ),
    Case("selu", selu),
    Case("celu", celu, attributes=({}, {"alpha": 2.0})),
    Case("softplus", softplus, attributes=({}, {"beta": 2.0, "threshold": 3.0})),
    Case("logsigmoid", lambda x: np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))),
    Case("silu", lambda x: x * sigmoid(x)),
    Case("silu_backward", silu_backward, shapes=PAIRS, special=False),
    Case("mish", lambda x: x * np.tanh(softplus(x))),
    Case("mish_backward", mish_backward, shapes=PAIRS, special=False),
    Case("gelu", gelu, attributes=({}, {"approximate": "tanh"})),
    Case(
        "gelu_backward",
        gelu_backward,
        shapes=PAIRS,
        attributes=({"approximate": "none"}, {"approximate": "tanh"}),
        special=False,
    ),
    Case("glu", glu, shapes=(((2, 4),), ((6,),), ((4, 2, 2),)), attributes=({}, {"dim": 0})),
    Case("softmax", softmax, shapes=ALONG, attributes=DIMS),
    Case(
        "softmax_backward",
        lambda g, out, dim: out * (g - (g * out).sum(dim, keepdims=True)),
        shapes=PAIRS,
        attributes=DIMS,
        special=False,
    ),
    Case("log_softmax", log_softmax, shapes=ALONG, attributes=DIMS),
    Case(
        "log_softmax_backward",
        lambda g, out, dim: g - np.exp(out) * g.sum(dim, keepdims=True),
        shapes=PAIRS,
        attributes=DIMS,
        special=False,
    ),
    Case("softmin", lambda x, dim: softmax(-x, dim), shapes=ALONG, attributes=DIMS, torch="nn.functional.softmin"),
    Case(
        "normalize",
        normalize,
        shapes=(((2, 3),), ((2, 3, 2),)),
        attributes=({}, {"p": 1.0, "dim": 0}),
    ),
    Case("one_hot", one_hot, make=one_hot_calls, dtypes=("int64",), gradient=False),
)
