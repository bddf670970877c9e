"""Rows of the ops that make tensors; tests/test_creation.py compares their arguments with PyTorch's."""

import numpy as np

from corefw.testing.case import Case


def made(op, reference, *arguments, **options):
    """A row of an op that takes no tensor: its calls by their arguments."""
    options = {"dtypes": ("float32",), "gradient": False, **options}
    return Case(op, reference, make=lambda rng, dtype: [(list(given), {}) for given in arguments], **options)


CASES = (
    made("zeros", lambda *size: np.zeros(size), (2, 3), (0,)),
    made("ones", lambda *size: np.ones(size), (2, 3), (0,)),
    made("full", np.full, ((2, 3), 2.5), ((), 1.0)),
    made("scalar_tensor", np.asarray, (3.5,)),
)
