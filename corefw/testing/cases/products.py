"""Products of matrices and vectors."""

import numpy as np

from corefw.testing.case import Case
from corefw.testing.cases.decomposition import SHAPES, TALL, elements, regular, row


def matrix_power(A, n):
    return np.linalg.matrix_power(A, n)


def chains(rng, dtype):
    shapes = (((2, 3), (3, 4)), ((3,), (3, 2), (2, 4)), ((2, 3), (3, 4), (4, 2), (2,)))
    return [([[elements(rng, s, dtype) for s in chain]], {}) for chain in shapes]


POWERS = ("float32", "float64", "complex128", "int64")


CASES = (
    Case(
        "linalg_vander",
        lambda x, N=None: np.reshape([np.vander(line, N, True) for line in x.reshape(-1, x.shape[-1])], (*x.shape, -1)),
        (((4,),), ((2, 3),)),
        ({}, {"N": 2}, {"N": 5}),
        dtypes=POWERS,
        special=False,
    ),
    Case(
        "vander",
        lambda x, N=None, increasing=False: np.vander(x, N, increasing),
        (((4,),), ((1,),)),
        ({}, {"N": 0}, {"N": 5, "increasing": True}),
        dtypes=POWERS,
        special=False,
    ),
    row("linalg_matrix_power", matrix_power, regular(SHAPES, *({"n": n} for n in (1, 5, -2)))),
    row("matrix_power", matrix_power, regular(SHAPES, {"n": 3})),
    row("linalg_multi_dot", lambda tensors: np.linalg.multi_dot(tensors), chains),
    row(
        "linalg_cross",
        lambda a, b, dim=-1: np.cross(a, b, axis=dim),
        regular(((3, 3),), {}, {"dim": 0}, beside=((3, 3),)),
    ),
    row(
        "linalg_vecdot",
        lambda a, b, dim=-1: (np.conj(a) * b).sum(dim),
        regular(((3, 3),), {}, {"dim": 0}, beside=((3, 3),)),
    ),
    row("linalg_diagonal", lambda A, offset=0: np.diagonal(A, offset, -2, -1), regular(TALL, {}, {"offset": 1})),
)
