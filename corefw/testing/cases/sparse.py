"""Rows of the products of sparse matrices with dense ones."""

import numpy as np

from corefw.testing.case import Case
from corefw.testing.cases.indexing import values


def dense(entries, crow, col, columns):
    """The sparse matrix of `entries`; where several stand in one place they add up."""
    matrix = np.zeros((len(crow) - 1, columns), entries.dtype)
    for row in range(len(crow) - 1):
        for e in range(crow[row], crow[row + 1]):
            matrix[row, col[e]] += entries[e]
    return matrix


def csr_matmul(entries, other, crow, col):
    return dense(entries, crow, col, len(other)) @ other


def csr_transposed_matmul(entries, other, crow, col, columns):
    return dense(entries, crow, col, columns).T @ other


def csr_sampled_matmul(left, right, crow, col):
    rows = [row for row in range(len(crow) - 1) for _ in range(crow[row], crow[row + 1])]
    return np.array([left[r] @ right[c] for r, c in zip(rows, col)], left.dtype).reshape(len(col))


#: rows, columns, columns of the dense matrix, entries; entries repeat, and rows are empty
SIZES = ((4, 3, 5, 7), (3, 6, 70, 9), (2, 3, 1, 0), (0, 2, 2, 0), (3, 2, 0, 4))


def pattern(rng, rows, columns, entries):
    counts = rng.multinomial(entries, [1 / rows] * rows) if rows else np.zeros(0, np.int64)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), rng.integers(0, columns, entries)


def calls(with_columns):
    def make(rng, numpy_dtype):
        found = []
        for rows, columns, width, entries in SIZES:
            crow, col = pattern(rng, rows, columns, entries)
            other = values(rng, numpy_dtype, rows if with_columns else columns, width)
            given = [values(rng, numpy_dtype, entries), other, crow, col]
            found.append((given, {"columns": columns} if with_columns else {}))
        return found

    return make


def samples(rng, numpy_dtype):
    return [
        (
            [
                values(rng, numpy_dtype, rows, width),
                values(rng, numpy_dtype, columns, width),
                *pattern(rng, rows, columns, n),
            ],
            {},
        )
        for rows, columns, width, n in SIZES
    ]


CASES = (
    Case("csr_matmul", csr_matmul, make=calls(False), torch=None),
    Case("csr_sampled_matmul", csr_sampled_matmul, make=samples, torch=None),
    Case("csr_transposed_matmul", csr_transposed_matmul, make=calls(True), torch=None),
)
