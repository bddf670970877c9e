"""Embeddings: rows of a table picked by positions."""

from __future__ import annotations

from corefw import dtypes
from corefw.dispatch.declare import Index, composite, ops
from corefw.dispatch.rules import floats, same
from corefw.dispatch.sparse.tensors import rows_of
from corefw.errors import CorefwError, DtypeError, PositionError, ShapeError
from corefw.graph.grad_mode import no_recording


def _rows_shape(weight, indices, *attributes):
    if len(weight) != 2:
        raise ShapeError(f"'weight' must be 2-D, got shape {list(weight)}")
    return (*indices, weight[1])


def _check_positions(indices, number: int = 1, name: str = "embedding") -> None:
    if indices.dispatch_key.dtype not in (dtypes.int64, dtypes.int32):
        raise DtypeError(
            f"Expected tensor for argument #{number} 'indices' to have one of the following scalar types: Long, Int; "
            f"but got {indices.dispatch_key.dtype.title} instead (while checking arguments for {name})"
        )


@composite()
def embedding(weight, indices: Index, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False):
    """`corefw.nn.functional.embedding` with the arguments in another order.

    >>> import corefw as torch
    >>> torch.embedding(torch.tensor([[1.0], [2.0]]), torch.tensor([1, 1]))
    tensor([[2.],
            [2.]])
    """
    _check_positions(indices)
    if sparse:
        return _with_sparse_gradient(weight, indices, padding_idx, scale_grad_by_freq)
    return ops.pick_rows(weight, indices, padding_idx, scale_grad_by_freq)


def _with_sparse_gradient(weight, indices, padding_idx: int, scale_grad_by_freq: bool):
    """The rows of `weight` at `indices`, whose gradient is a sparse tensor."""
    if scale_grad_by_freq:
        raise ConflictError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
    positions = indices.flatten().to(dtypes.int64)
    rows = rows_of(weight, positions)
    if padding_idx >= 0:
        rows = ops.where((positions == padding_idx).unsqueeze(1), rows.detach(), rows)
    return rows.reshape(*indices.shape, weight.shape[1])


class ConflictError(CorefwError, RuntimeError):
    """Arguments that exclude each other."""


@composite(dtype=same, shape=_rows_shape, public="", grad_name="Embedding")
def pick_rows(weight, indices: Index, padding_idx: int = -1, scale_grad_by_freq: bool = False):
    """The rows of `weight` at `indices`; the row `padding_idx` gets no gradient."""
    _rows_shape(weight.array.shape, indices.array.shape)
    rows = weight.index_select(0, indices.flatten().to(dtypes.int64))
    return rows.reshape(*indices.shape, weight.shape[1])


@pick_rows.gradient("weight")
def pick_rows_vjp(grad, weight_shape, indices, padding_idx, scale_grad_by_freq):
    return ops.embedding_dense_backward(grad, indices, weight_shape[0], padding_idx, scale_grad_by_freq)


def _table_shape(grad_output, indices, num_weights, *attributes):
    if tuple(grad_output[:-1]) != tuple(indices) or not grad_output:
        raise ShapeError(f"expected a gradient of shape {[*indices, '*']}, got {list(grad_output)}")
    return num_weights, grad_output[-1]


def _shares(indices, num_weights: int, padding_idx: int, scale_grad_by_freq: bool, like):
    """What of a picked row's gradient reaches the table: nothing of the padding's, 1/n of a row picked n times."""
    share = (indices != padding_idx).to(like.dtype)
    if scale_grad_by_freq:
        rows = indices.flatten().to(dtypes.int64)
        ones = ops.ones(rows.shape, dtype=like.dtype, device=like.device)
        counts = ops.zeros((num_weights,), dtype=like.dtype, device=like.device).index_add(0, rows, ones)
        share = share / counts.index_select(0, rows).reshape(indices.shape)
    return share.unsqueeze(-1)


@composite(dtype=floats, shape=_table_shape, public="")
def embedding_dense_backward(grad_output, indices: Index, num_weights: int, padding_idx: int, scale_grad_by_freq: bool):
    """The gradient of a table of `num_weights` rows: for each the sum of the gradients of where it was picked."""
    _table_shape(grad_output.array.shape, indices.array.shape, num_weights)
    if padding_idx >= 0 or scale_grad_by_freq:
        grad_output = grad_output * _shares(indices, num_weights, padding_idx, scale_grad_by_freq, grad_output)
    table = ops.zeros((num_weights, grad_output.shape[-1]), dtype=grad_output.dtype, device=grad_output.device)
    return table.index_add(
        0, indices.flatten().to(dtypes.int64), grad_output.reshape(indices.numel(), grad_output.shape[-1])
    )


@embedding_dense_backward.gradient("grad_output")
def embedding_dense_backward_vjp(grad, indices, num_weights, padding_idx, scale_grad_by_freq):
    return ops.pick_rows(grad, indices) * _shares(indices, num_weights, padding_idx, scale_grad_by_freq, grad)


@composite()
def embedding_renorm_(weight, indices: Index, max_norm: float, norm_type: float = 2.0):
    """Scale, in place, the rows of `weight` at `indices` whose norm of order `norm_type` exceeds `max_norm` down to it.

    >>> import corefw as torch
    >>> torch.embedding_renorm_(torch.tensor([[3.0, 4.0], [6.0, 8.0]]), torch.tensor([0]), 1.0)
    tensor([[0.6000, 0.8000],
            [6.0000, 8.0000]])
    """
    _check_positions(indices, 2, "embedding_renorm_")
    with no_recording():
        rows = indices.flatten().unique().to(dtypes.int64)
        picked = ops.pick_rows(weight, rows)
        norms = picked.norm(norm_type, dim=1, keepdim=True)
        factors = ops.where(norms > max_norm, max_norm / (norms + 1e-7), ops.ones_like(norms))
        return weight.index_copy_(0, rows, picked * factors)


class PaddingError(PositionError, AssertionError):
    """A padding position outside the table (PyTorch raises AssertionError)."""


@composite(public="nn.functional.embedding")
def functional_embedding(
    input: Index, weight, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, sparse: bool = False,
):  # fmt: skip
    """The rows of `weight` at the positions `input`.

    Args:
        input: positions from 0 to V - 1, of dtype int64 or int32, any shape (*).
        weight: the table, shape (V, D).
        padding_idx: a row that gets no gradient.
        max_norm: if given, picked rows of larger norm are first scaled down to it, in place.
        norm_type: the order of that norm.
        scale_grad_by_freq: whether the gradient of a row is divided by how often it was picked.
        sparse: whether the gradient of the table is a sparse tensor, which has only the rows that were picked.

    Returns: shape (*, D). Raises IndexError for a position outside the table.

    >>> import corefw as torch
    >>> torch.nn.functional.embedding(torch.tensor([1, 0]), torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[3., 4.],
            [1., 2.]])
    """
    _rows_shape(weight.shape, input.shape)
    count = weight.shape[0]
    if padding_idx is None:
        padding_idx = -1
    elif not -count <= padding_idx < count:
        raise PaddingError("Padding_idx must be within num_embeddings")
    elif padding_idx < 0:
        padding_idx += count
    _check_positions(input)
    if max_norm is not None:
        embedding_renorm_(weight, input, max_norm, norm_type)
    if sparse:
        return _with_sparse_gradient(weight, input, padding_idx, scale_grad_by_freq)
    return ops.pick_rows(weight, input, padding_idx, scale_grad_by_freq)
