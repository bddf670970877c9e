"""What a key means, the thing in brackets behind a tensor: a view, and index tensors to apply to it."""

from __future__ import annotations

import operator

import numpy as np

from corefw import dtypes
from corefw.dispatch.batching.tensors import is_batched
from corefw.dispatch.declare import ops
from corefw.dispatch.registry import dispatch_key_of
from corefw.errors import DeviceError, PositionError
from corefw.shapes import turned_slice
from corefw.tensor import Tensor, wrap
from corefw.tracebacks import warn

_BASIC = frozenset({int, slice, type(None), type(Ellipsis)})
_WHOLE = slice(None)


def is_forward(part: slice) -> bool:
    """Whether a slice has no step, or a positive one."""
    return part.step is None or (part.step.__class__ is int and part.step > 0)


def is_basic(key: tuple) -> bool:
    """Whether a key holds only ints, slices with no step or a positive one, None and Ellipsis."""
    for item in key:
        kind = item.__class__
        if kind is slice:
            if item.step is not None and not is_forward(item):
                return False
        elif kind is not int and item is not None and item is not Ellipsis:
            return False
    return True


def _are_positions(self: Tensor, key: tuple) -> bool:
    """Whether a key holds only int64 tensors with dimensions, at the device of `self`."""
    for item in key:
        if item.__class__ is not Tensor or item.dispatch_key.dtype is not dtypes.int64 or not item.array.ndim:
            return False
        if item.dispatch_key.device is not self.dispatch_key.device:
            return False
    return bool(key)


def part_of(self: Tensor, key):
    """The view of `self` that the basic entries of `key` show, the index tensors to apply to it, or None, and the
    dimensions of the view that slices with a negative step show in reverse order."""
    if key.__class__ is slice and is_forward(key):
        return ops.slice_index(self, (key,)), None, None
    if key.__class__ is tuple and is_basic(key):
        return ops.basic_index(self, key), None, None
    if key.__class__ is tuple and len(key) <= self.array.ndim and _are_positions(self, key):
        return self, list(key), None
    if isinstance(key, Tensor) and key.array.ndim:
        indices: list = [_positions(self, key)]
        if _taken(indices[0]) > self.array.ndim:
            raise PositionError(f"too many indices for tensor of dimension {self.array.ndim}")
        return self, indices, None
    if key.__class__ is not tuple:
        key = tuple(key) if isinstance(key, tuple) or _means_tuple(key) else (key,)
    items = [_item(self, item) for item in key]
    through = self.array.ndim - sum(map(_taken, items))  # dimensions that an Ellipsis stands for
    if through < 0:
        raise PositionError(f"too many indices for tensor of dimension {self.array.ndim}")
    if sum(item is Ellipsis for item in items) > 1:
        raise PositionError("an index can only have a single ellipsis ('...')")
    basic: list = []
    indices = []  # for the dimensions of the view
    backward = []
    for at, item in enumerate(items):
        if item.__class__ is int:
            basic.append(item)
        elif item is Ellipsis:
            basic.append(item)
            indices += [None] * through
        elif item is None or item.__class__ is slice:
            if item is not None and item.step is not None and operator.index(item.step) < 0:
                before = sum(through if i is Ellipsis else _taken(i) for i in items[:at])
                item = turned_slice(item, self.array.shape[before])
                backward.append(sum(1 if i is None else _taken(i) for i in indices))
            basic.append(item)
            indices.append(None)
        elif item.__class__ is bool:  # a mask without dimensions: a new dimension, of size 1 or 0
            basic.append(None)
            indices.append(_from_host(self, np.zeros(int(item), np.int64)))
        else:
            basic += [_WHOLE] * _taken(item)
            indices.append(item)
    while indices and indices[-1] is None:
        indices.pop()
    if not indices:
        return ops.basic_index(self, tuple(basic)), None, backward
    if all(item is Ellipsis or (item.__class__ is slice and item == _WHOLE) for item in basic):
        return self, indices, backward
    return ops.basic_index(self, tuple(basic)), indices, backward


def _means_tuple(key) -> bool:
    """Whether a list is meant as a tuple of indices: if it holds other things than numbers, as in old NumPy."""
    return isinstance(key, list) and any(
        item is None or item is Ellipsis or isinstance(item, (Tensor, list, tuple, slice, np.ndarray, range))
        for item in key
    )


def _taken(item) -> int:
    """How many dimensions of the indexed tensor an entry of the key stands for."""
    if isinstance(item, Tensor):
        return item.array.ndim if item.dispatch_key.dtype in (dtypes.bool_, dtypes.uint8) else 1
    return int(item.__class__ in (int, slice))


def _item(self: Tensor, item):
    """An entry of a key as int, slice, None, Ellipsis, bool or a tensor with dimensions."""
    kind = item.__class__
    if kind in _BASIC or kind is bool:
        return item
    if isinstance(item, np.bool_):
        return bool(item)
    if not isinstance(item, Tensor):
        if isinstance(item, (list, tuple, range, np.ndarray)):
            item = _from_host(self, _host_index(item))
        elif hasattr(item, "__index__"):
            return operator.index(item)
        else:
            raise PositionError(
                "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
                f"(got {type(item).__name__})"
            )
    if item.array.ndim:
        return _positions(self, item)
    if item.dispatch_key.dtype.category != dtypes.INTEGER or item.dispatch_key.dtype is dtypes.uint8:
        _check_index_dtype(item)
    if is_batched(item):  # each example has its own
        return _positions(self, item)
    value = item.item()
    return bool(value) if item.dispatch_key.dtype in (dtypes.bool_, dtypes.uint8) else value


def _host_index(item) -> np.ndarray:
    host = np.array(item)
    if host.size == 0 and not isinstance(item, np.ndarray):
        return host.astype(np.int64)
    if host.dtype.kind not in "biu":
        raise PositionError(f"tensors used as indices must be long, int, byte or bool tensors (got {host.dtype})")
    return host if host.dtype in (np.bool_, np.uint8) else host.astype(np.int64)


def _from_host(self: Tensor, host: np.ndarray) -> Tensor:
    dispatch_key = dispatch_key_of(self.dispatch_key.device, dtypes.of_numpy(host.dtype))
    return wrap(dispatch_key.runtime.upload(host, dispatch_key.device.index), dispatch_key)


def _check_index_dtype(item: Tensor) -> None:
    kind = item.dispatch_key.dtype
    if kind is dtypes.uint8:
        warn("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.")
    elif kind not in (dtypes.int64, dtypes.bool_, dtypes.int32):
        raise PositionError(f"tensors used as indices must be long, int, byte or bool tensors (got {kind!r})")


def _positions(self: Tensor, item: Tensor) -> Tensor:
    """An index tensor checked, and brought to the device of `self` if it lies on the CPU."""
    _check_index_dtype(item)
    device = self.dispatch_key.device
    if item.dispatch_key.device == device:
        return item
    if item.dispatch_key.device.type != "cpu":
        raise DeviceError(f"indices should be either on cpu or on the same device as the indexed tensor ({device})")
    return item.to(device)
