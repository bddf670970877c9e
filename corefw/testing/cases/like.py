"""Tensors in the image of another; tests/test_creation.py compares their arguments with PyTorch's."""

import numpy as np

from corefw.testing.case import Case


def like(op, reference, **options):
    """A row of an op of which only the input's shape and dtype count."""
    return Case(op, reference, gradient=False, special=False, **options)


CASES = (
    like("zeros_like", np.zeros_like),
    like("ones_like", np.ones_like),
    like("full_like", np.full_like, attributes=({"fill_value": 1},)),
    like("new_zeros", lambda input, size: np.zeros(size), attributes=({"size": (2, 3)},)),
    like("new_ones", lambda input, size: np.ones(size), attributes=({"size": (2, 3)},)),
    like(
        "new_full",
        lambda input, size, fill_value: np.full(size, fill_value),
        attributes=({"size": (2, 3), "fill_value": 1},),
    ),
)
