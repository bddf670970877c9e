"""The parts of floating-point numbers."""

import numpy as np

from corefw.testing.case import Case


def _samples(rng, dtype):
    limits = np.finfo(dtype) if dtype.kind == "f" else None
    extremes = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -0.75]
    if limits is not None:
        extremes += [limits.max, limits.tiny, limits.smallest_subnormal, -3 * limits.smallest_subnormal]
    return [([rng.uniform(-9, 9, (3, 4)).astype(dtype)], {}), ([np.array(extremes).astype(dtype)], {})]


def _parts(a):
    mantissa, exponent = np.frexp(a)
    return mantissa, np.where(np.isfinite(a), exponent, 0).astype(np.int32)


# PyTorch's gradient is computed by powers in float32, beyond whose range it is infinite.
CASES = (Case("frexp", _parts, make=_samples, wide=False, torch=None),)
