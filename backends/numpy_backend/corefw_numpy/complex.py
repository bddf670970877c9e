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

    def complex(real, imag):
        result = xp.empty(xp.broadcast_shapes(real.shape, imag.shape), xp.result_type(real.dtype, xp.complex64))
        result.real = real
        result.imag = imag
        return result

    return {"angle": angle, "complex": complex, "conj_physical": conj_physical}


def data_movement(xp):
    """Ops that only move or compare elements."""
    return {}
