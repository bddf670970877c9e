"""Products with sparse matrices."""

from __future__ import annotations

from corefw.dispatch.declare import ops
from corefw.dispatch.sparse.calls import refusal, rule
from corefw.dispatch.sparse.patterns import compressed, coo, row_of_entries
from corefw.dispatch.sparse.tensors import elements_of, is_sparse, sparse
from corefw.errors import LayoutError, ShapeError
from corefw.layouts import layout, sparse_coo, sparse_csr
from corefw.sparse.forms import coalesce, to_layout
from corefw.tensor import Tensor


def _rows(input: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The values of a sparse matrix in the order of its rows, where each row begins, and their columns."""
    crow, col, order = compressed(input.array.pattern)
    values = elements_of(input)
    return values if order is None else values.index_select(0, order), crow, col


def _check(name: str, input: Tensor, other: Tensor) -> None:
    for factor in (input, other):
        if is_sparse(factor) and (factor.ndim != 2 or len(factor.array.pattern.shape) != 2):
            raise refusal(name, (factor,), " but matrices without dense dimensions")
    if input.ndim != 2 or other.ndim not in (1, 2):
        raise ShapeError(f"{name}: expected matrices, got shapes {list(input.shape)} and {list(other.shape)}")
    if input.shape[1] != other.shape[0]:
        shapes = [("x".join(map(str, t.shape))) for t in (input, other)]
        raise ShapeError(f"{name}: mat1 and mat2 shapes cannot be multiplied ({shapes[0]} and {shapes[1]})")


def _sparse_times_sparse(input: Tensor, other: Tensor) -> Tensor:
    """Each value of the first times all values of the row of the second that its column names."""
    columns, shape = other.shape[1], (input.shape[0], other.shape[1])
    values, crow, col = _rows(input)
    others, other_crow, other_col = _rows(other)
    counts = (other_crow[1:] - other_crow[:-1]).index_select(0, col)
    entry = ops.repeat_interleave(counts)
    begins = counts.cumsum(0) - counts
    other_entry = ops.arange(entry.shape[0], device=col.device) + (
        other_crow.index_select(0, col) - begins
    ).index_select(0, entry)
    rows = row_of_entries(crow, col.shape[0]).index_select(0, entry)
    pattern = coo(ops.stack([rows, other_col.index_select(0, other_entry)]), (shape[0], columns))
    products = values.index_select(0, entry) * others.index_select(0, other_entry)
    return to_layout(coalesce(sparse(pattern, products)), *_layout_of_product(input, other))


def _layout_of_product(input: Tensor, other: Tensor) -> tuple[layout, tuple[int, ...] | None]:
    """That of the first, with blocks where both have some."""
    block, other_block = input.array.pattern.block, other.array.pattern.block
    if not block:
        return input.layout, None
    return (input.layout, block[:1] + other_block[1:]) if other_block else (sparse_csr, None)


@rule("matmul", "mm", "mv")
def _product(input, other):
    _check("matmul", input, other)
    if is_sparse(input) and is_sparse(other):
        return _sparse_times_sparse(input, other)
    if not is_sparse(input):
        values, crow, col = _rows(other)
        return ops.csr_transposed_matmul(values, input.t(), crow, col, other.shape[1]).t()
    values, crow, col = _rows(input)
    if other.ndim == 1:
        return ops.csr_matmul(values, other.unsqueeze(1), crow, col).squeeze(1)
    return ops.csr_matmul(values, other, crow, col)


@rule("addmm")
def _product_added(input, mat1, mat2, beta=1, alpha=1):
    product = ops.mm(mat1, mat2)
    if is_sparse(input) and not is_sparse(product):
        raise refusal("addmm", (input,), " as what is added to a dense product")
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return product
    return (input if beta == 1 else input * beta) + product


_REDUCTIONS = {"sum": "sum", "mean": "mean", "amax": "amax", "amin": "amin", "max": "amax", "min": "amin"}


def mm(mat1: Tensor, mat2: Tensor, reduce: str = "sum") -> Tensor:
    """The product of two matrices of which the first, or both, may be sparse: dense, or sparse of two sparse ones.

    Args:
        mat1, mat2: the matrices; for a `reduce` other than "sum" one by rows (``sparse_csr``) and a dense one.
        reduce: what becomes of the products of a row's values: "sum", "mean", "amax" or "amin" of those that there
            are. Rows without values are 0.

    >>> import corefw as torch
    >>> a = torch.sparse_coo_tensor([[0, 1], [1, 0]], [2.0, 3.0], (2, 2))
    >>> torch.sparse.mm(a, torch.ones(2, 2))
    tensor([[2., 2.],
            [3., 3.]])
    """
    if reduce not in _REDUCTIONS:
        raise ValueError(f"sparse.mm: reduce must be one of {', '.join(_REDUCTIONS)}, got {reduce!r}")
    if reduce == "sum":
        return ops.mm(mat1, mat2)
    if not is_sparse(mat1) or mat1.layout is not sparse_csr or is_sparse(mat2):
        raise LayoutError(
            f"sparse.mm: reduce={reduce!r} takes a matrix by rows and a dense one: make the first by .to_sparse_csr()"
        )
    if mat1.ndim != 2 or mat2.ndim != 2 or mat1.shape[1] != mat2.shape[0]:
        raise ShapeError(f"sparse.mm: {tuple(mat1.shape)} @ {tuple(mat2.shape)}: inner sizes differ")
    values, crow, col = _rows(mat1)
    products = values.unsqueeze(1) * mat2.index_select(0, col)
    rows = row_of_entries(crow, values.shape[0]).unsqueeze(1).expand_as(products)
    zeros = ops.zeros((mat1.shape[0], mat2.shape[1]), dtype=products.dtype, device=products.device)
    return zeros.scatter_reduce(0, rows, products, _REDUCTIONS[reduce], include_self=False)


def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    """``beta * mat + alpha * (mat1 @ mat2)``, of a sparse matrix `mat1`.

    >>> import corefw as torch
    >>> a = torch.eye(2).to_sparse()
    >>> torch.sparse.addmm(torch.ones(2, 2), a, torch.ones(2, 2), beta=0.5)
    tensor([[1.5000, 1.5000],
            [1.5000, 1.5000]])
    """
    return ops.addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def sampled_addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    """``beta * input + alpha * (mat1 @ mat2)`` at the entries of the sparse matrix `input`; of the product nothing
    else is computed.

    >>> import corefw as torch
    >>> torch.sparse.sampled_addmm(torch.eye(2).to_sparse_csr(), torch.ones(2, 3), torch.ones(3, 2)).values()
    tensor([4., 4.])
    """
    if not is_sparse(input):
        raise LayoutError("sampled_addmm: expected a sparse input: make one by .to_sparse_csr()")
    input = coalesce(input) if input.layout is sparse_coo else to_layout(input, sparse_csr)
    values, crow, col = _rows(input)
    products = ops.csr_sampled_matmul(mat1, mat2.t(), crow, col)
    return sparse(input.array.pattern, values * beta + products * alpha)
