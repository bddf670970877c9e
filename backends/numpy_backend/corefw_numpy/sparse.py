"""Products of sparse matrices in compressed rows with dense ones: SciPy's, where it is installed."""

from functools import cache


@cache
def _scipy_sparse():
    """`scipy.sparse`, or None."""
    try:
        import scipy.sparse
    except ImportError:
        return None
    return scipy.sparse


def _check(xp, crow, col, shape, columns, *matrices):
    """Refuse entries outside of the matrix, values that are not one for each, and what are no matrices."""
    count = col.size
    if shape != (count,) or any(matrix.ndim != 2 for matrix in matrices):
        raise ValueError("the shapes of values, positions or dense matrices do not fit")
    if crow.dtype != "int64" or col.dtype != "int64":
        raise IndexError("expected positions of dtype int64")
    inside = crow[0] == 0 and crow[-1] == count and not (xp.diff(crow) < 0).any()
    if not inside or (count and not (col.min() >= 0 and col.max() < columns)):
        raise IndexError(f"an index is out of bounds of the sparse matrix of {len(crow) - 1} rows")


def kernels(xp):
    """The products."""

    def rows_of(crow):
        return xp.repeat(xp.arange(len(crow) - 1), xp.diff(crow))

    def summed(products, positions, rows):
        result = xp.zeros((rows, products.shape[1]), products.dtype)
        xp.add.at(result, positions, products)
        return result

    def csr_matmul(values, other, crow, col):
        _check(xp, crow, col, values.shape, len(other), other)
        sparse = _scipy_sparse()
        if sparse is None:
            return summed(values[:, None] * other[col], rows_of(crow), len(crow) - 1)
        return sparse.csr_array((values, col, crow), shape=(len(crow) - 1, len(other))) @ other

    def csr_transposed_matmul(values, other, crow, col, columns):
        _check(xp, crow, col, values.shape, columns, other)
        if len(other) != len(crow) - 1:
            raise ValueError("the dense matrix has another number of rows")
        sparse = _scipy_sparse()
        if sparse is None:
            return summed(values[:, None] * other[rows_of(crow)], col, columns)
        return sparse.csc_array((values, col, crow), shape=(columns, len(crow) - 1)) @ other

    def csr_sampled_matmul(left, right, crow, col):
        _check(xp, crow, col, col.shape, len(right), left, right)
        if len(left) != len(crow) - 1 or left.shape[1] != right.shape[1]:
            raise ValueError("the shapes of the matrices do not fit")
        return xp.einsum("ek,ek->e", left[rows_of(crow)], right[col])

    return {
        "csr_matmul": csr_matmul,
        "csr_sampled_matmul": csr_sampled_matmul,
        "csr_transposed_matmul": csr_transposed_matmul,
    }


def data_movement(xp):
    """Ops that only move elements: none."""
    return {}
