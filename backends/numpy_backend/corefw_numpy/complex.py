"""Complex numbers: parts, conjugates and views."""

import numpy as np


def kernels(xp):
    """Ops that compute."""

    def angle(input):
        if input.dtype.kind == "c":
            return xp.angle(input)
        return xp.where(xp.isnan(input), input, xp.where(input < 0, input.dtype.type(np.pi), input.dtype.type(0)))

    def conj_physical(input):
        return xp.conjugate(input) if input.dtype.kind == "c" else input.copy()

    return {"angle": angle, "conj_physical": conj_physical}


def movements(xp):
    """Ops that only move or compare elements."""
    return {}
