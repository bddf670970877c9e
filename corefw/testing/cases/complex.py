"""Complex numbers."""

import numpy as np

from corefw.testing.case import Case
from corefw.testing.cases.pointwise import nonzero

BOTH = ("float32", "float64", "complex64", "complex128")
PAIRS = (((2, 3), (2, 3)), ((), ()), ((3, 1), (4,)), ((0, 3), (3,)))


def angle(a):
    return np.angle(a) if a.dtype.kind == "c" else np.where(np.isnan(a), np.nan, np.where(a < 0, np.pi, 0))


CASES = (
    Case("view_as_real", lambda a: np.stack([a.real, a.imag], -1)),
    Case("real", np.real, dtypes=BOTH),
    Case("imag", np.imag, dtypes=("complex64", "complex128")),
    Case("conj", np.conj, dtypes=BOTH),
    Case("conj_physical", lambda a: np.conj(a) if a.dtype.kind == "c" else a),
    Case("resolve_conj", lambda a: a, dtypes=BOTH),
    Case("resolve_neg", lambda a: a),
    Case("is_neg", lambda a: False, dtypes=BOTH),
    Case("is_conj", lambda a: False, dtypes=BOTH),
    Case("is_complex", lambda a: a.dtype.kind == "c", dtypes=BOTH),
    Case("isreal", np.isreal, dtypes=BOTH),
    Case("angle", angle, make=nonzero),
    Case("complex", lambda real, imag: real + 1j * imag, PAIRS, dtypes=("float32", "float64"), special=False),
    Case(
        "polar",
        lambda abs, angle: abs * np.exp(1j * angle),
        PAIRS,
        domain=(0.1, 3.0),
        dtypes=("float32", "float64"),
        special=False,
    ),
)
