"""Fusions and arrays for tests of their kernels."""

import numpy as np

from corefw import dtypes
from corefw.dispatch.fusion import Fusion, Part

FLOATS = (dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16)
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, -2, 3e38, 1e-45, 1e6, -88.7, 1e300]


def numbers(dtype, shape, seed=0):
    """Elements of a dtype, the first of them special ones."""
    rng = np.random.default_rng(seed)
    if not dtype.is_floating_point:
        return rng.integers(0, 2 if dtype is dtypes.bool_ else 100, shape).astype(dtype.numpy)
    with np.errstate(over="ignore"):
        made = rng.normal(0, 2, shape).astype(dtype.numpy)
        special = rng.permutation(SPECIAL).astype(dtype.numpy)[: made.size]
    made.reshape(-1)[: special.size] = special
    return made


def chain(dtype, inputs=3):
    """gelu(x * y + z) of some dtype."""
    parts = Part("mul", (0, 1), (), dtype), Part("add", (3, 2), (), dtype), Part("gelu", (4,), (), dtype)
    return Fusion((dtype,) * inputs, parts, (5,))


UNARY = ("neg", "abs", "exp", "tanh", "relu", "sigmoid", "gelu", "sin", "square", "floor")
BINARY = ("add", "sub", "mul", "div", "maximum", "minimum", "atan2", "gelu_backward", "fmod")
TESTS = ("lt", "ge", "eq", "isnan", "isfinite")


def random_fusion(rng):
    """Parts that take any values that are there, of all dtypes, with some outputs and perhaps a sum."""
    inputs = [FLOATS[i] for i in rng.integers(0, 4, rng.integers(1, 6))]
    inputs += [dtypes.bool_] * int(rng.integers(0, 2))
    known, parts = [*inputs], []

    def values(dtype):
        return [i for i, d in enumerate(known) if d is dtype]

    for _ in range(rng.integers(2, 20)):
        dtype = FLOATS[rng.integers(0, 4)]
        of, masks = values(dtype), values(dtypes.bool_)
        kind = rng.choice(["cast", "choose", "unary", "binary", "test", "number"])
        if kind == "cast" or not of:
            source = int(rng.integers(0, len(known)))
            if known[source] is dtypes.float64 and dtype.itemsize == 2:
                continue
            part = Part("cast", (source,), (), dtype)
        elif kind == "choose" and masks:
            part = Part("choose", tuple(int(rng.choice(v)) for v in (masks, of, of)), (), dtype)
        elif kind == "number":
            part = Part("leaky_relu", (int(rng.choice(of)),), (float(rng.choice([0.1, 0.0, -0.0, 3.0])),), dtype)
        elif kind == "test":
            name = str(rng.choice(TESTS))
            operands = [int(rng.choice(of)) for _ in range(1 if name.startswith("is") else 2)]
            part = Part(name, tuple(operands), (), dtypes.bool_)
        elif kind == "binary":
            part = Part(str(rng.choice(BINARY)), (int(rng.choice(of)), int(rng.choice(of))), (), dtype)
        else:
            part = Part(str(rng.choice(UNARY)), (int(rng.choice(of)),), (), dtype)
        parts.append(part)
        known.append(part.dtype)
    if not parts:
        return random_fusion(rng)
    made = range(len(inputs), len(known))
    outputs = rng.choice(made, rng.integers(1, min(len(parts), 5) + 1), replace=False)
    return Fusion(tuple(inputs), tuple(parts), tuple(map(int, outputs)))


def random_inputs(rng, fusion):
    """Inputs whose shapes broadcast to that of the first one."""
    shape = [(3, 700), (2500,), (65, 33), (2, 3, 40), (1, 1)][int(rng.integers(0, 5))]
    inputs = []
    for i, dtype in enumerate(fusion.inputs):
        own = shape if i == 0 else tuple(n if rng.random() < 0.7 else 1 for n in shape)[int(rng.integers(0, 2)) :]
        inputs.append(numbers(dtype, own, int(rng.integers(0, 1000))))
    return inputs
