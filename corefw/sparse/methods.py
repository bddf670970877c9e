"""The methods and attributes of tensors that concern sparse ones."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, NoReturn

from corefw import dtypes, printing
from corefw.dispatch.sparse.calls import refusal
from corefw.dispatch.sparse.patterns import Pattern
from corefw.dispatch.sparse.tensors import SparseTensor, is_sparse, sparse, values_of
from corefw.errors import GradientError, LayoutError
from corefw.graph.nodes import leaf_node
from corefw.layouts import BY_COLUMNS, COMPRESSED, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from corefw.layouts import layout as layout_type
from corefw.sparse import forms
from corefw.sparse.construction import sparse_compressed_tensor, sparse_coo_tensor
from corefw.tensor import Tensor
from corefw.tensor_api.attach import method


def _refuse_layout(name: str, tensor: Tensor, wanted: layout_type) -> NoReturn:
    raise LayoutError(
        f"{name} expected a tensor of layout {wanted} but got {tensor.layout}: convert it by .to_sparse(layout=...)"
    )


def _pattern(name: str, tensor: Tensor, *wanted: layout_type) -> Pattern:
    """The pattern of a tensor that must have one of these layouts."""
    if tensor.layout not in wanted:
        _refuse_layout(name, tensor, wanted[0])
    return tensor.array.pattern


# -- forms ------------------------------------------------------------------------------------------------------------
@method
def to_sparse(
    self, sparse_dim: int | None = None, *, layout: layout_type | None = None,
    blocksize: tuple[int, int] | None = None, dense_dim: int | None = None,
) -> Tensor:  # fmt: skip
    """The tensor in a sparse layout; of a dense one the elements, or blocks, that are not zero.

    Args:
        sparse_dim: how many of the first dimensions are sparse; all if None.
        layout: torch.sparse_coo, which None means, or torch.sparse_csr, sparse_csc, sparse_bsr or sparse_bsc.
        blocksize: the height and width of the blocks of the last two.
        dense_dim: how many of the last dimensions are dense, instead of `sparse_dim`.

    >>> import corefw as torch
    >>> torch.eye(2).to_sparse().indices()
    tensor([[0, 1],
            [0, 1]])
    """
    if isinstance(sparse_dim, layout_type):
        sparse_dim, layout = None, sparse_dim
    if is_sparse(self):
        return forms.to_layout(self, layout, blocksize)
    if dense_dim is not None:
        sparse_dim = self.ndim - dense_dim
    return forms.to_layout(forms.from_dense(self, sparse_dim), layout, blocksize)


@method
def to_sparse_coo(self) -> Tensor:
    """The tensor as a sparse one of coordinates."""
    return to_sparse(self)


@method
def to_sparse_csr(self, dense_dim: int | None = None) -> Tensor:
    """The matrix as a sparse one of compressed rows; the last `dense_dim` dimensions are dense."""
    return to_sparse(self, layout=sparse_csr, dense_dim=dense_dim)


@method
def to_sparse_csc(self, dense_dim: int | None = None) -> Tensor:
    """The matrix as a sparse one of compressed columns; the last `dense_dim` dimensions are dense.

    >>> import corefw as torch
    >>> torch.tensor([[0.0, 1.0], [2.0, 0.0]]).to_sparse_csc().values()
    tensor([2., 1.])
    """
    return to_sparse(self, layout=sparse_csc, dense_dim=dense_dim)


@method
def to_sparse_bsr(self, blocksize: tuple[int, int], dense_dim: int | None = None) -> Tensor:
    """The matrix as a sparse one of blocks in compressed rows; the last `dense_dim` dimensions are dense.

    >>> import corefw as torch
    >>> torch.eye(4).to_sparse_bsr((2, 2)).col_indices()
    tensor([0, 1])
    """
    return to_sparse(self, layout=sparse_bsr, blocksize=blocksize, dense_dim=dense_dim)


@method
def to_sparse_bsc(self, blocksize: tuple[int, int], dense_dim: int | None = None) -> Tensor:
    """The matrix as a sparse one of blocks in compressed columns; the last `dense_dim` dimensions are dense."""
    return to_sparse(self, layout=sparse_bsc, blocksize=blocksize, dense_dim=dense_dim)


@method
def to_dense(self, dtype=None, *, masked_grad: bool | None = None) -> Tensor:
    """The tensor as a dense one; itself if it is dense.

    Args:
        dtype: that of the result; None keeps it.
        masked_grad: accepted; the gradient is that at the positions of the sparse tensor.

    >>> import corefw as torch
    >>> torch.eye(2).to_sparse().to_dense()
    tensor([[1., 0.],
            [0., 1.]])
    """
    result = forms.to_dense(self) if is_sparse(self) else self
    return result if dtype is None else result.to(dtype)


@method
def sparse_mask(self, mask: Tensor) -> Tensor:
    """The elements of the tensor at the positions of a sparse one."""
    return forms.masked(self, mask)


@method
def coalesce(self) -> Tensor:
    """A tensor of coordinates with its positions in order and each once; values at one place are added.

    >>> import corefw as torch
    >>> torch.sparse_coo_tensor([[1, 0, 1]], [1.0, 2.0, 3.0]).coalesce().values()
    tensor([2., 4.])
    """
    _pattern("coalesce", self, sparse_coo)
    return forms.coalesce(self)


# -- what it holds ----------------------------------------------------------------------------------------------------
@method
def is_coalesced(self) -> bool:
    """Whether it is known that no position repeats and that they are in order."""
    return _pattern("is_coalesced", self, sparse_coo).coalesced


@method
def _coalesced_(self, coalesced: bool) -> Tensor:
    """Say, in place, whether no position repeats and all are in order; it is not checked."""
    pattern = _pattern("_coalesced_", self, sparse_coo)
    self.array.pattern = Pattern(pattern.layout, pattern.parts, pattern.shape, bool(coalesced))
    return self


def _check_coalesced(name: str, tensor: Tensor) -> None:
    if not tensor.array.pattern.coalesced:
        raise GradientError(f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first")


@method
def indices(self) -> Tensor:
    """The positions of the values, (sparse dimensions, values)."""
    pattern = _pattern("indices", self, sparse_coo)
    _check_coalesced("indices", self)
    return pattern.parts[0]


@method
def values(self) -> Tensor:
    """The values, (values, dense dimensions ...), of blocks (blocks, height, width, dense dimensions ...)."""
    _pattern("values", self, sparse_coo, *COMPRESSED)
    _check_coalesced("values", self)
    return values_of(self)


@method
def _indices(self) -> Tensor:
    """The positions of the values, coalesced or not."""
    return _pattern("_indices", self, sparse_coo).parts[0]


@method
def _values(self) -> Tensor:
    """The values, coalesced or not, without history."""
    _pattern("_values", self, sparse_coo, *COMPRESSED)
    return self.array.values


@method
def crow_indices(self) -> Tensor:
    """Where the values, or blocks, of each row begin, and those of the last one end."""
    return _pattern("crow_indices", self, sparse_csr, sparse_bsr).parts[0]


@method
def col_indices(self) -> Tensor:
    """The column of each value, or block."""
    return _pattern("col_indices", self, sparse_csr, sparse_bsr).parts[1]


@method
def ccol_indices(self) -> Tensor:
    """Where the values, or blocks, of each column begin, and those of the last one end."""
    return _pattern("ccol_indices", self, sparse_csc, sparse_bsc).parts[0]


@method
def row_indices(self) -> Tensor:
    """The row of each value, or block."""
    return _pattern("row_indices", self, sparse_csc, sparse_bsc).parts[1]


@method
def _nnz(self) -> int:
    """The number of values, or of blocks of them."""
    return _pattern("_nnz", self, sparse_coo, *COMPRESSED).count


@method
def sparse_dim(self) -> int:
    """How many dimensions are sparse."""
    return len(self.array.pattern.shape) if is_sparse(self) else 0


@method
def dense_dim(self) -> int:
    """How many dimensions are dense."""
    return self.ndim - sparse_dim(self)


# -- of sparse tensors alone ------------------------------------------------------------------------------------------
def _own(function):
    """Put `function` on sparse tensors in place of the method that dense ones have."""
    setattr(SparseTensor, function.__name__, function)
    return function


def _own_attribute(name: str):
    def decorate(function):
        setattr(SparseTensor, name, property(function))
        return function

    return decorate


@_own_attribute("layout")
def _layout(self) -> layout_type:
    """How the elements are held."""
    return self.dispatch_key.layout


@_own_attribute("is_sparse")
def _is_coordinates(self) -> bool:
    """Whether it is a tensor of coordinates."""
    return self.dispatch_key.layout is sparse_coo


@_own_attribute("is_sparse_csr")
def _is_sparse_csr(self) -> bool:
    """Whether it is a matrix in compressed rows."""
    return self.dispatch_key.layout is sparse_csr


@_own_attribute("data")
def _data(self) -> Tensor:
    """The tensor without history."""
    return self.detach()


def _converted(name: str) -> None:
    def convert(self, *arguments: Any, **options: Any) -> Tensor:
        values = values_of(self)
        made = getattr(values, name)(*arguments, **options)
        if made is values:
            return self
        pattern = self.array.pattern
        if made.device is not values.device:
            pattern = pattern.with_parts(tuple(part.to(made.device) for part in pattern.parts))
        return sparse(pattern, made)

    convert.__name__ = name
    _own(convert)


for _name in (
    "to",
    "cpu",
    "cuda",
    "type_as",
    "bfloat16",
    "cdouble",
    "cfloat",
    "double",
    "float",
    "half",
    "int",
    "long",
):
    _converted(_name)


def _refused(name: str) -> None:
    def refuse(self, *arguments: Any, **options: Any) -> NoReturn:
        raise refusal(name, (self,))

    refuse.__name__ = name
    _own(refuse)


for _name in (
    *("numpy", "tolist", "item", "__array__", "__dlpack__"),
    *("stride", "data_ptr", "untyped_storage", "is_contiguous", "contiguous", "reshape", "resize_", "share_memory_"),
):
    _refused(_name)


@_own
def zero_(self) -> Tensor:
    """Forget all values, in place."""
    if self.requires_grad:
        raise GradientError("zero_: a sparse tensor with gradients cannot be changed in place; make a new one")
    self.array = forms.empty_like(self).array
    self.version[0] += 1
    return self


def _host(tensor: Tensor):
    return tensor.dispatch_key.runtime.download(tensor.array)


@_own
def __repr__(self) -> str:
    pattern, given, node = self.array.pattern, self.array.values, self.grad_fn
    names: tuple[str, ...] = ("indices",)
    if pattern.layout in COMPRESSED:
        names = ("ccol_indices", "row_indices") if pattern.layout in BY_COLUMNS else ("crow_indices", "col_indices")
    suffixes = [f"size={tuple(self.shape)}", f"nnz={pattern.count}"]
    if printing.shows_dtype(self.dtype.name, dtypes.get_default_dtype().name):
        suffixes.append(f"dtype={self.dtype}")
    suffixes.append(f"layout={pattern.layout}")
    if self.device.type != "cpu":
        suffixes.insert(0, f"device='{self.device}'")
    if node is not None:
        suffixes.append(f"grad_fn=<{node.name()}>")
    elif self.requires_grad:
        suffixes.append("requires_grad=True")
    parts = {name: _host(part) for name, part in zip(names, pattern.parts, strict=True)} | {"values": _host(given)}
    return printing.format_sparse(parts, suffixes, breaks_line=pattern.layout is sparse_coo)


@_own
def __str__(self) -> str:
    return repr(self)


@_own
def __format__(self, specification: str) -> str:
    return format(repr(self), specification)


@_own
def __copy__(self) -> Tensor:
    return rebuild(self.array.pattern, self.array.values, self.requires_grad)


@_own
def __deepcopy__(self, memo: dict) -> Tensor:
    if not self.is_leaf:
        raise GradientError("copy.deepcopy: of sparse tensors only leaves; use .detach().clone() to copy others")
    pattern = self.array.pattern
    copied = pattern.with_parts(deepcopy(pattern.parts, memo))
    memo[id(self)] = made = rebuild(copied, self.array.values.clone(), self.requires_grad)
    return made


def rebuild(pattern: Pattern, values: Tensor, requires_grad: bool) -> Tensor:
    """A leaf of these values."""
    made = sparse(pattern, values.detach())
    if requires_grad:
        made.node = leaf_node(made)
    return made


def unpickled(kind: layout_type, parts, shape, coalesced: bool, values: Tensor, requires_grad: bool) -> Tensor:
    """A sparse tensor from what pickle kept of it."""
    if kind is sparse_coo:
        made = sparse_coo_tensor(parts[0], values, shape, is_coalesced=coalesced)
    else:
        compressed, plain = parts
        made = sparse_compressed_tensor(compressed, plain, values, shape, layout=kind)
    return made.requires_grad_(requires_grad)


@_own
def __reduce_ex__(self, protocol):
    pattern = self.array.pattern
    kept = (pattern.layout, pattern.parts, tuple(self.shape), pattern.coalesced, self.array.values)
    return unpickled, (*kept, self.requires_grad)
