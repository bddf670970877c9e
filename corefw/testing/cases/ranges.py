"""Ranges; tests/test_creation.py compares their arguments with PyTorch's."""

import numpy as np

from corefw.testing.cases.creation import made

CASES = (
    made("eye", np.eye, (3,), (2, 3), (3, 2), (0,)),
    made("arange", np.arange, (5,), (1, 5, 2), (5, 1, -2), (0, 1, 0.25), (0,)),
    made("linspace", np.linspace, (0, 1, 5), (3, -3, 4), (0, 1, 1), (0, 1, 0)),
    made(
        "logspace",
        lambda start, end, steps, base=10.0: np.logspace(start, end, steps, base=base),
        (-1, 1, 3),
        (0, 3, 4, 2.0),
    ),
)
