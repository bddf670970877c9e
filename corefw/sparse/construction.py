"""Sparse tensors from positions and values."""

from __future__ import annotations

from typing import Any

from corefw import dtypes
from corefw.dispatch.declare import ops
from corefw.dispatch.sparse.patterns import Pattern, coo
from corefw.dispatch.sparse.tensors import sparse
from corefw.errors import LayoutError, ShapeError
from corefw.graph.nodes import leaf_node
from corefw.layouts import (
    BLOCKED,
    BY_COLUMNS,
    COMPRESSED,
    layout,
    sparse_bsc,
    sparse_bsr,
    sparse_csc,
    sparse_csr,
)
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


def _refuse_pinned(name: str, pin_memory: bool) -> None:
    if pin_memory:
        raise NotImplementedError(f"{name}: pin_memory=True is not supported: pin the values' memory yourself")


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
    _refuse_pinned(name, pin_memory)
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


def _compressed(
    kind: layout, compressed_indices: Any, plain_indices: Any, values: Any, size: Any, *, dtype=None, device=None,
    pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """A matrix in a compressed layout, after a check of its positions."""
    name, by_columns = f"{kind.name}_tensor", kind in BY_COLUMNS
    begins_name, plain_name = ("ccol_indices", "row_indices") if by_columns else ("crow_indices", "col_indices")
    line = "column" if by_columns else "row"
    _refuse_pinned(name, pin_memory)
    values = _values(values, dtype, device)
    begins, plain = (_positions(given, name, values.device) for given in (compressed_indices, plain_indices))
    blocked = kind in BLOCKED
    if (
        begins.ndim != 1 or plain.ndim != 1 or not begins.shape[0]
        or values.ndim < (3 if blocked else 1) or values.shape[0] != plain.shape[0]
    ):  # fmt: skip
        raise ShapeError(
            f"{name}: expected {begins_name} ({line}s + 1), {plain_name} (values) and values "
            f"{'(blocks, height, width)' if blocked else '(values)'}; batches are not supported; got shapes "
            f"{list(begins.shape)}, {list(plain.shape)}, {list(values.shape)}"
        )
    count, lines = plain.shape[0], begins.shape[0] - 1
    block = tuple(values.shape[1:3]) if blocked else ()
    rest = tuple(values.shape[1 + len(block) :])
    outer, inner = (block or (1, 1))[::-1] if by_columns else block or (1, 1)
    if size is None:
        both = lines * outer, (int(plain.max()) + 1 if count else 0) * inner
        size = (*(both[::-1] if by_columns else both), *rest)
    size = tuple(as_shape(size))
    whole, across = size[:2][::-1] if by_columns else size[:2]
    if size[2:] != rest or whole != lines * outer or across % max(inner, 1):
        raise ShapeError(
            f"{name}: size {list(size)} does not fit {begins_name} of shape {list(begins.shape)} and values of shape "
            f"{list(values.shape)}"
        )
    if begins.device.type != "meta":
        if int(begins[0]) != 0 or int(begins[-1]) != count or bool((begins[1:] < begins[:-1]).any()):
            raise ShapeError(f"{name}: {begins_name} must rise from 0 to nnz, {count}")
        pairs = [ops.zeros_like(plain), plain]
        sizes = (max(lines, 1), across // max(inner, 1))
        _check_inside(name, ops.stack(pairs[::-1] if by_columns else pairs), sizes[::-1] if by_columns else sizes)
    return _made(Pattern(kind, (begins, plain), size[:2], True, block), values, requires_grad)


def sparse_csr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Any = None, *, dtype=None, device=None,
    pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
) -> Tensor:  # fmt: skip
    """A sparse matrix in compressed rows: the values of row r are those from ``crow_indices[r]`` to
    ``crow_indices[r + 1] - 1``, and value e stands in column ``col_indices[e]``.

    Args:
        crow_indices: (rows + 1), int64 or int32.
        col_indices: (values N), of the same dtype.
        values: (N, ...), of which the dimensions after the first are dense ones of the result.
        size: (rows, columns, ...); the smallest number of columns if None.
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
    options = {"dtype": dtype, "device": device, "pin_memory": pin_memory, "requires_grad": requires_grad}
    return _compressed(sparse_csr, crow_indices, col_indices, values, size, **options)


def sparse_csc_tensor(
    ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, *, dtype=None, device=None,
    pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
) -> Tensor:  # fmt: skip
    """A sparse matrix in compressed columns: as `sparse_csr_tensor`, with ``ccol_indices`` (columns + 1) and the row of
    each value.

    >>> import corefw as torch
    >>> torch.sparse_csc_tensor([0, 1, 1, 2], [1, 0], [3.0, 4.0]).to_dense()
    tensor([[0., 0., 4.],
            [3., 0., 0.]])
    """
    options = {"dtype": dtype, "device": device, "pin_memory": pin_memory, "requires_grad": requires_grad}
    return _compressed(sparse_csc, ccol_indices, row_indices, values, size, **options)


def sparse_bsr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Any = None, *, dtype=None, device=None,
    pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
) -> Tensor:  # fmt: skip
    """A sparse matrix of blocks in compressed rows: as `sparse_csr_tensor`, with positions counted in blocks and
    ``values`` (blocks, height, width, ...).

    >>> import corefw as torch
    >>> torch.sparse_bsr_tensor([0, 1], [1], [[[1.0, 2.0]]], (1, 4)).to_dense()
    tensor([[0., 0., 1., 2.]])
    """
    options = {"dtype": dtype, "device": device, "pin_memory": pin_memory, "requires_grad": requires_grad}
    return _compressed(sparse_bsr, crow_indices, col_indices, values, size, **options)


def sparse_bsc_tensor(
    ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, *, dtype=None, device=None,
    pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
) -> Tensor:  # fmt: skip
    """A sparse matrix of blocks in compressed columns: as `sparse_bsr_tensor`, by columns.

    >>> import corefw as torch
    >>> torch.sparse_bsc_tensor([0, 0, 1], [0], [[[1.0, 2.0]]], (1, 4)).to_dense()
    tensor([[0., 0., 1., 2.]])
    """
    options = {"dtype": dtype, "device": device, "pin_memory": pin_memory, "requires_grad": requires_grad}
    return _compressed(sparse_bsc, ccol_indices, row_indices, values, size, **options)


def sparse_compressed_tensor(
    compressed_indices: Any, plain_indices: Any, values: Any, size: Any = None, *, dtype=None,
    layout: layout | None = None, device=None, pin_memory: bool = False, requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:  # fmt: skip
    """A sparse matrix in the compressed layout that is named, as its own function makes it.

    >>> import corefw as torch
    >>> torch.sparse_compressed_tensor([0, 1, 2], [1, 0], [3.0, 4.0], layout=torch.sparse_csc).to_dense()
    tensor([[0., 4.],
            [3., 0.]])
    """
    if layout not in COMPRESSED:
        raise LayoutError(f"sparse_compressed_tensor expected sparse compressed tensor layout but got {layout}")
    options = {"dtype": dtype, "device": device, "pin_memory": pin_memory, "requires_grad": requires_grad}
    return _compressed(layout, compressed_indices, plain_indices, values, size, **options)
