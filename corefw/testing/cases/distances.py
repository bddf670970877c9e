"""Distances between rows of matrices."""

import numpy as np

from corefw.testing.case import Case


def pdist(input, p=2):
    rows = len(input)
    between = [input[i] - input[j] for i in range(rows) for j in range(i + 1, rows)]
    return np.array([np.linalg.norm(difference, p) for difference in between], input.dtype)


def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    return np.linalg.norm(x1 - x2 + eps, p, -1, keepdim)


def cdist(x1, x2, p=2.0):
    return np.linalg.norm(x1[..., :, None, :] - x2[..., None, :, :], p, -1)


CASES = (
    Case(
        "pdist",
        pdist,
        shapes=(((4, 3),), ((1, 2),), ((2, 5),)),
        attributes=({}, {"p": 1.0}, {"p": 3.0}, {"p": np.inf}),
        dtypes=("float32", "float64"),
        special=False,
    ),
    Case(
        "pairwise_distance",
        pairwise_distance,
        shapes=(((2, 3), (2, 3)), ((3,), (3,)), ((2, 3), (3,))),
        attributes=({}, {"p": 1.0, "keepdim": True}, {"p": 3.0, "eps": 0.5}),
        special=False,
    ),
    Case(
        "cdist",
        cdist,
        shapes=(((2, 3), (4, 3)), ((2, 1, 3), (1, 2, 3))),
        attributes=({}, {"p": 1.0}, {"p": 3.0}),
        special=False,
    ),
    Case(
        "euclidean_distances", cdist, shapes=(((2, 3), (4, 3)), ((2, 1, 3), (1, 2, 3)), ((0, 3), (2, 3))), special=False
    ),
)
