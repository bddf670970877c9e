"""Products of sparse matrices in compressed rows (CSR), given by their entries, with dense ones.

Of the entries of row r, from ``crow[r]`` to ``crow[r + 1] - 1``, entry e has the value ``values[e]`` and is in column
``col[e]``. Three products are closed under differentiation: with the matrix, with its transpose, and the elements of a
dense product at the entries.
"""

from __future__ import annotations

from corefw.dispatch.declare import Index, composite, ops
from corefw.dispatch.rules import floats
from corefw.errors import ShapeError


def _check_entries(crow, col, values=None) -> None:
    if len(crow) != 1 or len(col) != 1 or crow[0] < 1:
        raise ShapeError(f"expected vectors of positions of the rows and columns, got shapes {list(crow)}, {list(col)}")
    if values is not None and tuple(values) != tuple(col):
        raise ShapeError(f"expected a value for each of the {col[0]} entries, got values of shape {list(values)}")


def _times(*shape: int) -> str:
    return "x".join(map(str, shape))


def _product_shape(values, other, crow, col):
    _check_entries(crow, col, values)
    if len(other) != 2:
        raise ShapeError(f"expected a dense matrix, got shape {list(other)}")
    return crow[0] - 1, other[1]


def _transposed_shape(values, other, crow, col, columns):
    _product_shape(values, other, crow, col)
    if other[0] != crow[0] - 1:
        raise ShapeError(
            f"mat1 and mat2 shapes cannot be multiplied ({_times(columns, crow[0] - 1)} and {_times(*other)})"
        )
    return columns, other[1]


def _sampled_shape(left, right, crow, col):
    _check_entries(crow, col)
    if len(left) != 2 or len(right) != 2 or left[1] != right[1] or left[0] != crow[0] - 1:
        raise ShapeError(f"expected matrices of {crow[0] - 1} rows and of one width, got {list(left)}, {list(right)}")
    return tuple(col)


def _rows(crow, col):
    """The row of each entry; -1, or one too many, if the matrix has none for it."""
    return ops.searchsorted(crow, ops.arange(col.shape[0], device=col.device), right=True) - 1


@composite(dtype=floats, shape=_product_shape, public="")
def csr_matmul(values, other, crow: Index, col: Index):
    """A sparse matrix times a dense one."""
    shape = _product_shape(values.shape, other.shape, crow.shape, col.shape)
    products = values.unsqueeze(-1) * other.index_select(0, col)
    return ops.zeros(shape, dtype=values.dtype, device=values.device).index_add(0, _rows(crow, col), products)


csr_matmul.gradients(
    values=lambda grad, other, crow, col: ops.csr_sampled_matmul(grad, other.conj(), crow, col),
    other=lambda grad, values, other_shape, crow, col: ops.csr_transposed_matmul(
        values.conj(), grad, crow, col, other_shape[0]
    ),
)


@composite(dtype=floats, shape=_transposed_shape, public="")
def csr_transposed_matmul(values, other, crow: Index, col: Index, columns: int):
    """A sparse matrix of so many columns, transposed, times a dense one."""
    shape = _transposed_shape(values.shape, other.shape, crow.shape, col.shape, columns)
    products = values.unsqueeze(-1) * other.index_select(0, _rows(crow, col))
    return ops.zeros(shape, dtype=values.dtype, device=values.device).index_add(0, col, products)


csr_transposed_matmul.gradients(
    values=lambda grad, other, crow, col: ops.csr_sampled_matmul(other.conj(), grad, crow, col),
    other=lambda grad, values, crow, col: ops.csr_matmul(values.conj(), grad, crow, col),
)


@composite(dtype=floats, shape=_sampled_shape, public="")
def csr_sampled_matmul(left, right, crow: Index, col: Index):
    """The elements of ``left @ right.T`` at the entries of a sparse matrix (a sampled dense-dense product)."""
    _sampled_shape(left.shape, right.shape, crow.shape, col.shape)
    return (left.index_select(0, _rows(crow, col)) * right.index_select(0, col)).sum(-1)


csr_sampled_matmul.gradients(
    left=lambda grad, right, crow, col: ops.csr_matmul(grad, right.conj(), crow, col),
    right=lambda grad, left, right_shape, crow, col: ops.csr_transposed_matmul(
        grad, left.conj(), crow, col, right_shape[0]
    ),
)
