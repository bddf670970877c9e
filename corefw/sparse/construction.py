"""Sparse tensors from positions and values."""

from __future__ import annotations

from typing import Any

from corefw import dtypes
from corefw.dispatch.declare import ops
from corefw.dispatch.sparse.patterns import Pattern, coo
from corefw.dispatch.sparse.tensors import sparse
from corefw.errors import ShapeError
from corefw.graph.nodes import leaf_node
from corefw.layouts import sparse_csr
from corefw.shapes import as_shape
from corefw.tensor import Tensor
from corefw.tensor_api.construction import tensor


def _positions(given: Any, name: str, device) -> Tensor:
    if not isinstance(given, Tensor):
        given = tensor(given)
        given = given if given.numel() else given.to(dtypes.int64)
    if given.dtype not in (dtypes.int64, dtypes.int32):
        raise TypeError(f"{name}: expected positions of dtype int64 or int32, got {given.dtype}: convert them first")
    return given.detach() if device is None else given.detach().to(device)


def _values(given: Any, dtype, device) -> Tensor:
    if not isinstance(given, Tensor):
        return tensor(given, dtype=dtype, device=device)
    return given.to(device=device or given.device, dtype=dtype or given.dtype)


def _made(pattern: Pattern, values: Tensor, requires_grad: bool) -> Tensor:
    if requires_grad:
        values = values.detach()
    made = sparse(pattern, values)
    if requires_grad:
        made.node = leaf_node(made)
    return made


def _check_inside(name: str, indices: Tensor, shape: tuple[int, ...]) -> None:
    if not indices.shape[1] or indices.device.type == "meta":
        return
    low, high = indices.amin(1).tolist(), indices.amax(1).tolist()
    for dim, size in enumerate(shape):
        if low[dim] < 0:
            raise ShapeError(f"{name}: found negative index {low[dim]} for dim {dim}")
        if high[dim] >= size:
            raise ShapeError(
                f"{name}: size is inconsistent with indices: for dim {dim}, size is {size} but found index {high[dim]}"
            )


def sparse_coo_tensor(
    indices: Any, values: Any = None, size: Any = None, *, dtype=None, device=None, pin_memory: bool = False,
    requires_grad: bool = False, check_invariants: bool | None = None, is_coalesced: bool | None = None,
) -> Tensor:  # fmt: skip
    """A sparse tensor of coordinates: the value ``values[e]`` stands at ``indices[:, e]``, values at one place add up.

    Args:
        indices: positions of dtype int64, (sparse dimensions S, values N); or, alone, the size of an empty tensor.
        values: (N, ...), of which the dimensions after the first are dense ones of the result.
        size: the shape; the smallest that holds all positions if None.
        dtype, device: those of `values` if None.
        pin_memory: False; other values are refused.
        requires_grad: whether the result is a leaf with gradients. Without, it is a computation of `values`.
        check_invariants: accepted; positions are always checked.
        is_coalesced: whether the caller knows that the positions are in order and that none repeats.

    Raises RuntimeError for shapes that do not fit and for positions outside of the tensor.

    >>> import corefw as torch
    >>> torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    name = "sparse_coo_tensor"
    if pin_memory:
        raise NotImplementedError(f"{name}: pin_memory=True is not supported: pin the values' memory yourself")
    if values is None:
        size = as_shape(indices if size is None else size)
        indices = ops.zeros((len(size), 0), dtype=dtypes.int64, device=device)
        return _made(coo(indices, tuple(size), True), ops.zeros((0,), dtype=dtype, device=device), requires_grad)
    values = _values(values, dtype, device)
    indices = _positions(indices, name, values.device).to(dtypes.int64)
    if indices.ndim != 2 or values.ndim < 1:
        raise ShapeError(
            f"{name}: expected indices of shape (sparse dimensions, values) and a value for each, got shapes "
            f"{list(indices.shape)} and {list(values.shape)}"
        )
    if indices.shape[1] != values.shape[0]:
        raise ShapeError(
            f"{name}: indices and values must have same nnz, but got nnz from indices: {indices.shape[1]}, nnz from "
            f"values: {values.shape[0]}"
        )
    sparse_dims, rest = indices.shape[0], tuple(values.shape[1:])
    if size is None:
        found = tuple(high + 1 for high in indices.amax(1).tolist()) if indices.shape[1] else (0,) * sparse_dims
        size = (*found, *rest)
    size = tuple(as_shape(size))
    if len(size) != sparse_dims + len(rest):
        raise ShapeError(
            f"{name}: number of dimensions must be sparse_dim ({sparse_dims}) + dense_dim ({len(rest)}), but got "
            f"{len(size)}"
        )
    if size[sparse_dims:] != rest:
        raise ShapeError(f"{name}: values of shape {list(values.shape)} do not fit size {list(size)}")
    _check_inside(name, indices, size[:sparse_dims])
    return _made(coo(indices, size[:sparse_dims], bool(is_coalesced)), values, requires_grad)


def sparse_csr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Any = None, *, dtype=None, device=None,
    pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
) -> Tensor:  # fmt: skip
    """A sparse matrix in compressed rows: the values of row r are those from ``crow_indices[r]`` to
    ``crow_indices[r + 1] - 1``, and value e stands in column ``col_indices[e]``.

    Args:
        crow_indices: (rows + 1), int64 or int32.
        col_indices: (values N), of the same dtype.
        values: (N).
        size: (rows, columns); the smallest number of columns if None.
        dtype, device: those of `values` if None.
        pin_memory: False; other values are refused.
        requires_grad: whether the result is a leaf with gradients. Without, it is a computation of `values`.
        check_invariants: accepted; positions are always checked.

    Raises RuntimeError for shapes that do not fit and for positions outside of the matrix.

    >>> import corefw as torch
    >>> torch.sparse_csr_tensor([0, 1, 2], [2, 0], [3.0, 4.0], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    name = "sparse_csr_tensor"
    if pin_memory:
        raise NotImplementedError(f"{name}: pin_memory=True is not supported: pin the values' memory yourself")
    values = _values(values, dtype, device)
    crow, col = (_positions(given, name, values.device) for given in (crow_indices, col_indices))
    if crow.ndim != 1 or col.ndim != 1 or values.ndim != 1 or not crow.shape[0] or col.shape != values.shape:
        raise ShapeError(
            f"{name}: expected crow_indices (rows + 1), col_indices (values) and values (values); batches and blocks "
            f"are not supported; got shapes {list(crow.shape)}, {list(col.shape)}, {list(values.shape)}"
        )
    count = col.shape[0]
    if size is None:
        size = (crow.shape[0] - 1, int(col.max()) + 1 if count else 0)
    size = tuple(as_shape(size))
    if len(size) != 2 or size[0] != crow.shape[0] - 1:
        raise ShapeError(f"{name}: size {list(size)} does not fit crow_indices of shape {list(crow.shape)}")
    if crow.device.type != "meta":
        if int(crow[0]) != 0 or int(crow[-1]) != count or bool((crow[1:] < crow[:-1]).any()):
            raise ShapeError(f"{name}: crow_indices must rise from 0 to nnz, {count}")
        _check_inside(name, ops.stack([ops.zeros_like(col), col]), (max(size[0], 1), size[1]))
    return _made(Pattern(sparse_csr, (crow, col), size, True), values, requires_grad)
