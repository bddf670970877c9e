"""Layers with weights of int8."""

import numpy as np

from corefw.testing.case import Case


def quantized_linear(input, weight, scale, sums, bias=None):
    """In float64, but for the input's steps, which are what they are in float32."""
    out = np.zeros((*input.shape[:-1], weight.shape[0])) + (0 if bias is None else bias.astype(float))
    if input.size == 0 or not np.isfinite(input).all():
        return out if input.size == 0 else np.full_like(out, np.nan)
    low, high = min(input.min(), np.float32(0)), max(input.max(), np.float32(0))
    step = (high - low) / np.float32(255)
    step = step if step > 0 else np.float32(1)
    zero = np.rint(-low / step)
    steps = np.clip(np.rint(input / step) + zero, 0, 255) - zero
    return out + steps.astype(float) @ weight.astype(float).T * float(step) * scale


def calls(rng, numpy_dtype):
    found = []
    sizes = (((3,), 4, 5), ((2, 3), 33, 70), ((), 2, 3), ((0,), 2, 3), ((40,), 200, 300), ((2,), 3, 0))
    for rows, features, width in sizes:
        weight = rng.integers(-128, 128, (features, width)).astype(np.int8)
        for scale, bias, offset in ((0.5, True, 0.0), (rng.uniform(0.1, 1, features), False, 5.0)):
            input = (rng.normal(size=(*rows, width)) + offset).astype(numpy_dtype)
            added = [rng.normal(size=features).astype(numpy_dtype)] if bias else []
            sums = weight.sum(1, dtype=np.int32)
            found.append(([input, weight, np.asarray(scale, numpy_dtype), sums, *added], {}))
    zeros, spoiled = (np.full((2, 5), value, numpy_dtype) for value in (0, np.nan))
    weight = rng.integers(-128, 128, (4, 5)).astype(np.int8)
    for input in (zeros, spoiled):
        found.append(([input, weight, np.asarray(1, numpy_dtype), weight.sum(1, dtype=np.int32)], {}))
    return found


CASES = (
    Case("quantized_linear", quantized_linear, make=calls, dtypes=("float32",), gradient=False, wide=False, torch=None),
)
