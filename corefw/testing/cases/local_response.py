"""Normalisation across neighbouring channels."""

import numpy as np

from corefw.testing.case import Case


def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    result = np.empty_like(input)
    for c in range(input.shape[1]):
        around = input[:, max(0, c - size // 2) : c + (size - 1) // 2 + 1]
        result[:, c] = input[:, c] / (k + alpha / size * (around**2).sum(1)) ** beta
    return result


CASES = (
    Case(
        "local_response_norm",
        local_response_norm,
        shapes=(((2, 5, 3),), ((1, 3, 2, 2),), ((0, 3, 2),)),
        attributes=({"size": 3}, {"size": 2, "alpha": 0.5, "beta": 0.6, "k": 2.0}),
        dtypes=("float32", "float64"),
        special=False,
    ),
)
