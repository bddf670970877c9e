"""Functions that libraries take from the module of PyTorch's own helpers: tensors joined to one and parted again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from corefw.dispatch.declare import ops
from corefw.dtypes import dtype, int32, int64
from corefw.serialization.rebuild import _rebuild_parameter, _rebuild_tensor_v2  # noqa: F401, names of this module
from corefw.tensor import Tensor
from corefw.tensor_api import tensor

__all__: list[str] = []


def _flatten_dense_tensors(tensors: Iterable[Tensor]) -> Tensor:
    """The elements of all tensors, one after the other."""
    return ops.cat([each.reshape(-1) for each in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """Views of parts of `flat` with the shapes of `tensors`.

    >>> import corefw as torch
    >>> both = [torch.ones(2), torch.zeros(1, 1)]
    >>> [part.tolist() for part in _unflatten_dense_tensors(_flatten_dense_tensors(both), both)]
    [[1.0, 1.0], [[0.0]]]
    """
    like = [*tensors]
    return tuple(
        part.view(each.shape) for part, each in zip(flat.split([each.numel() for each in like]), like, strict=True)
    )


def _take_tensors(tensors: Iterable[Tensor], size_limit: int) -> Iterator[list[Tensor]]:
    """Tensors of one type at a time, in lists of `size_limit` bytes, the last of a list going past it at most."""
    open_lists: dict[str, tuple[list[Tensor], int]] = {}
    for each in tensors:
        kind, size = each.type(), each.nbytes
        held, total = open_lists.get(kind, ([], 0))
        if total + size > size_limit and held:
            yield held
            held, total = [], 0
        open_lists[kind] = ([*held, each], total + size)
    for held, _ in open_lists.values():
        yield held


def _reorder_tensors_as(tensors: Iterable[Tensor], ordered_tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """`tensors`, which stand by type, in the order of tensors whose types are the same."""
    by_type: dict[str, list[Tensor]] = {}
    for each in tensors:
        by_type.setdefault(each.type(), []).append(each)
    ready = {kind: iter(held) for kind, held in by_type.items()}
    return tuple(next(ready[each.type()]) for each in ordered_tensors)


def _element_size(dtype: dtype) -> int:
    """The bytes of an element."""
    return dtype.itemsize


def _shape_as_tensor(input: Tensor) -> Tensor:
    """The sizes, as a tensor of int64."""
    return tensor(list(input.shape), dtype=int64)


def _convert_indices_from_coo_to_csr(input: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    """Where the values of each of `size` rows begin, and those of the last one end, from the sorted rows of values.

    >>> import corefw as torch
    >>> _convert_indices_from_coo_to_csr(torch.tensor([0, 0, 2]), 3)
    tensor([0, 2, 2, 3])
    """
    starts = ops.zeros(size + 1, dtype=int32 if out_int32 else int64, device=input.device)
    starts[1:] = ops.bincount(input, minlength=size).cumsum(0)
    return starts


def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """The rows and the columns of values, or the columns and the rows if `transpose`.

    >>> import corefw as torch
    >>> _convert_indices_from_csr_to_coo(torch.tensor([0, 2, 2, 3]), torch.tensor([0, 1, 0]))
    tensor([[0, 0, 2],
            [0, 1, 0]])
    """
    rows = ops.arange(crow_indices.shape[-1] - 1, device=col_indices.device).repeat_interleave(crow_indices.diff())
    both = (col_indices, rows) if transpose else (rows, col_indices)
    return ops.stack([each.to(int32 if out_int32 else int64) for each in both])
