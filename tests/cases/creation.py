"""Tensors from nothing but arguments: what takes no tensor is tested in tests/test_creation.py."""

import numpy as np

from corefw.testing import Case

PAIRS = (((2, 3), (2, 3)), ((), ()), ((3, 1), (4,)), ((0, 3), (3,)))

CASES = (
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
