"""Collation: samples to a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from corefw.dispatch.declare import ops
from corefw.dtypes import float64
from corefw.tensor import Tensor
from corefw.tensor_api import as_tensor, tensor


def default_convert(data: Any) -> Any:
    """NumPy arrays inside nested containers become tensors; everything else stays."""
    if isinstance(data, np.ndarray) and data.dtype.kind not in "OSU":
        return as_tensor(data)
    if isinstance(data, np.generic) and data.dtype.kind not in "OSU":
        return as_tensor(data)
    return _rebuild(data, default_convert)


def _rebuild(data: Any, convert) -> Any:
    if isinstance(data, Mapping):
        return {key: convert(value) for key, value in data.items()}
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(convert, data))
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return [convert(item) for item in data]
    return data


def default_collate(batch: Sequence[Any]) -> Any:
    """A batch of samples of one structure: tensors are stacked, numbers become tensors, containers are transposed.

    Raises TypeError for elements it does not know, RuntimeError for samples of unequal size.

    >>> import corefw as torch
    >>> torch.utils.data.default_collate([(1, 2.0), (3, 4.0)])
    [tensor([1, 3]), tensor([2., 4.], dtype=torch.float64)]
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return ops.stack(list(batch))
    if isinstance(first, np.ndarray | np.generic):
        if first.dtype.kind in "OSU":
            raise TypeError(f"default_collate: batch must contain numeric arrays; found dtype {first.dtype}")
        return ops.stack([as_tensor(item) for item in batch])
    if isinstance(first, float):
        return tensor(batch, dtype=float64)
    if isinstance(first, int):
        return tensor(batch)
    if isinstance(first, str | bytes):
        return list(batch)
    if isinstance(first, Mapping):
        return {key: default_collate([sample[key] for sample in batch]) for key in first}
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(default_collate(group) for group in zip(*batch, strict=True)))
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        return [default_collate(group) for group in zip(*batch, strict=True)]
    raise TypeError(
        f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {type(first)}"
    )
