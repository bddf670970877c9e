"""Rows of the ops that make tensors; tests/test_creation.py compares their arguments with PyTorch's."""

import numpy as np

from corefw.testing import Case

PAIRS = (((2, 3), (2, 3)), ((), ()), ((3, 1), (4,)), ((0, 3), (3,)))


def made(op, reference, *arguments, **options):
    """A row of an op that takes no tensor: its calls by their arguments."""
    options = {"dtypes": ("float32",), "gradient": False, **options}
    return Case(op, reference, make=lambda rng, dtype: [(list(given), {}) for given in arguments], **options)


def like(op, reference, **options):
    """A row of an op of which only the input's shape and dtype count."""
    return Case(op, reference, gradient=False, special=False, **options)


CASES = (
    made("zeros", lambda *size: np.zeros(size), (2, 3), (0,)),
    made("ones", lambda *size: np.ones(size), (2, 3), (0,)),
    made("full", np.full, ((2, 3), 2.5), ((), 1.0)),
    made("scalar_tensor", np.asarray, (3.5,)),
    made("eye", np.eye, (3,), (2, 3), (3, 2), (0,)),
    made("arange", np.arange, (5,), (1, 5, 2), (5, 1, -2), (0, 1, 0.25), (0,)),
    made("linspace", np.linspace, (0, 1, 5), (3, -3, 4), (0, 1, 1), (0, 1, 0)),
    made(
        "logspace",
        lambda start, end, steps, base=10.0: np.logspace(start, end, steps, base=base),
        (-1, 1, 3),
        (0, 3, 4, 2.0),
    ),
    like("zeros_like", np.zeros_like),
    like("ones_like", np.ones_like),
    like("full_like", np.full_like, statics=({"fill_value": 1},)),
    like("new_zeros", lambda input, size: np.zeros(size), statics=({"size": (2, 3)},), torch="Tensor.new_zeros"),
    like("new_ones", lambda input, size: np.ones(size), statics=({"size": (2, 3)},), torch="Tensor.new_ones"),
    like(
        "new_full",
        lambda input, size, fill_value: np.full(size, fill_value),
        statics=({"size": (2, 3), "fill_value": 1},),
        torch="Tensor.new_full",
    ),
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
