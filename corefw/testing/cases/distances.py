"""Distances between the rows of one matrix."""

import numpy as np

from corefw.testing.case import Case


def pdist(input, p=2):
    rows = len(input)
    between = [input[i] - input[j] for i in range(rows) for j in range(i + 1, rows)]
    return np.array([np.linalg.norm(difference, p) for difference in between], input.dtype)


CASES = (
    Case(
        "pdist",
        pdist,
        shapes=(((4, 3),), ((1, 2),), ((2, 5),)),
        attributes=({}, {"p": 1.0}, {"p": 3.0}, {"p": np.inf}),
        dtypes=("float32", "float64"),
        special=False,
    ),
)
