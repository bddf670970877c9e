"""Positions of elements."""

import numpy as np

from corefw.testing.case import Case
from corefw.testing.cases.indexing import values


def nonzero_samples(rng, dtype):
    return [([values(rng, dtype, *shape)], {}) for shape in ((3, 4), (2, 2, 3), (0, 3), (5,), ())]


def _static(x, size, fill_value=-1):
    found = np.argwhere(x != 0)[:size]
    return np.concatenate([found, np.full((size - len(found), x.ndim), fill_value)])


CASES = (
    Case("nonzero", lambda x: np.argwhere(x != 0), make=nonzero_samples, meta=False),
    Case("argwhere", lambda x: np.argwhere(x != 0), make=nonzero_samples, meta=False),
    Case(
        "tril_indices",
        lambda row, col, offset=0: (
            np.array([(i, j) for i in range(row) for j in range(col) if j - i <= offset], np.int64).reshape(-1, 2).T
        ),
        make=lambda rng, dtype: [([3, 4], {}), ([4, 3, 1], {}), ([3, 3, -1], {}), ([0, 3], {}), ([3, 3, -5], {})],
        dtypes=("int64",),
        meta=False,
    ),
    Case(
        "triu_indices",
        lambda row, col, offset=0: (
            np.array([(i, j) for i in range(row) for j in range(col) if j - i >= offset], np.int64).reshape(-1, 2).T
        ),
        make=lambda rng, dtype: [([3, 4], {}), ([4, 3, 1], {}), ([3, 3, -1], {}), ([0, 3], {}), ([3, 3, 5], {})],
        dtypes=("int64",),
        meta=False,
    ),
    Case(
        "nonzero_static",
        _static,
        make=lambda rng, dtype: [
            ([x], {"size": size, "fill_value": fill})
            for [x], _ in nonzero_samples(rng, dtype)
            for size, fill in ((0, -1), (3, -1), (30, 7))
        ],
        meta=False,
    ),
    Case(
        "unravel_index",
        lambda indices, shape: np.unravel_index(indices, shape),
        make=lambda rng, dtype: [
            ([rng.integers(0, 24, (2, 5)).astype(dtype)], {"shape": (2, 3, 4)}),
            ([np.asarray(7).astype(dtype)], {"shape": 9}),
            ([np.zeros(0, dtype)], {"shape": (0, 2)}),
        ],
        dtypes=("int64", "uint8", "int32"),
    ),
)
