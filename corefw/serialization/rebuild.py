"""The functions that checkpoints call to make tensors: PyTorch's ``torch._utils._rebuild_*`` under their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corefw import devices, dtypes
from corefw.declarations._shared.factories import new_strided
from corefw.dispatch.registry import dispatch_key_of
from corefw.dtypes import FLOATING, dtype
from corefw.graph.nodes import leaf_node
from corefw.layouts import COMPRESSED, LAYOUTS, layout, sparse_coo
from corefw.nn.parameter import Buffer, Parameter
from corefw.serialization.allowance import take
from corefw.serialization.storages import tensor_over
from corefw.shapes import extent
from corefw.sparse.construction import sparse_compressed_tensor, sparse_coo_tensor
from corefw.tensor import Tensor
from corefw.tensor_api.memory import UntypedStorage


def _rebuild_tensor(storage: UntypedStorage, storage_offset: int, size: tuple, stride: tuple) -> Tensor:
    """A tensor over a part of a storage; sizes in elements."""
    if not isinstance(storage, UntypedStorage):
        raise TypeError(f"expected a storage, got {type(storage).__name__}")
    return tensor_over(storage, storage_offset, size, stride)


def _take_copy(tensor: Tensor, d: dtype) -> None:
    """Ask for the memory of a copy: a few elements may be shown as many."""
    take(tensor.numel() * d.itemsize, f"a copy of a tensor of {list(tensor.shape)}")


def _finished(made: Tensor, requires_grad: bool, metadata: dict | None) -> Tensor:
    """The tensor with PyTorch's lazy conjugation and negation, if any, carried out."""
    if metadata:
        _take_copy(made, made.dispatch_key.dtype)
        made = made.conj() if metadata.get("conj") else made
        made = -made if metadata.get("neg") else made
    if requires_grad:
        if made.dispatch_key.dtype.category < FLOATING:
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        made.node = leaf_node(made)
    return made


def _rebuild_tensor_v2(storage, storage_offset, size, stride, requires_grad, backward_hooks, metadata=None) -> Tensor:
    """As `_rebuild_tensor`; hooks are never restored."""
    return _finished(_rebuild_tensor(storage, storage_offset, size, stride), requires_grad, metadata)


def _rebuild_tensor_v3(
    storage, storage_offset, size, stride, requires_grad, backward_hooks, dtype, metadata=None
) -> Tensor:
    """As `_rebuild_tensor_v2`, over untyped memory."""
    if not isinstance(storage, UntypedStorage):
        raise TypeError(f"expected a storage, got {type(storage).__name__}")
    made = tensor_over(storage, storage_offset, size, stride, dtypes.as_dtype(dtype))
    return _finished(made, requires_grad, metadata)


def _rebuild_sparse_tensor(kind: layout, data: tuple) -> Tensor:
    """A sparse tensor, of coordinates or in a compressed layout; its positions are checked."""
    if kind in COMPRESSED:
        return sparse_compressed_tensor(*data, layout=kind)
    if kind is not sparse_coo:
        raise TypeError(f"a checkpoint has a sparse tensor of layout {kind}, which is no sparse one")
    indices, values, size, *coalesced = data
    return sparse_coo_tensor(indices, values, size, is_coalesced=bool(coalesced and coalesced[0]))


def _rebuild_meta_tensor_no_storage(dtype: dtype, size: tuple, stride: tuple, requires_grad: bool) -> Tensor:
    """A tensor without memory."""
    dispatch_key, shape, strides = (
        dispatch_key_of(devices.device("meta"), dtypes.as_dtype(dtype)),
        tuple(size),
        tuple(stride),
    )
    extent(shape, strides)
    return _finished(new_strided(dispatch_key, shape, strides), requires_grad, None)


def _rebuild_device_tensor_from_cpu_tensor(data: Tensor, dtype: dtype, device: str, requires_grad: bool) -> Tensor:
    """A tensor of a device whose memory PyTorch cannot save, from its copy."""
    if not isinstance(data, Tensor):
        raise TypeError(f"expected a Tensor, got {type(data).__name__}")
    _take_copy(data, dtypes.as_dtype(dtype))
    return _finished(data.detach().to(device=device, dtype=dtype), requires_grad, None)


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks) -> Parameter:
    """A Parameter with the values of `data`."""
    if not isinstance(data, Tensor):
        raise TypeError(f"expected a Tensor, got {type(data).__name__}")
    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data: Tensor, requires_grad: bool, backward_hooks, state) -> Parameter:
    """A Parameter with attributes that users have set on it."""
    return _with_attributes(_rebuild_parameter(data, requires_grad, backward_hooks), state)


def _rebuild_from_type_v2(func: Callable, new_type: type, args: tuple, state: Any) -> Tensor:
    """What ``func(*args)`` makes, as an instance of a subclass of Tensor, with attributes that users have set on it."""
    made = func(*args)
    if not isinstance(made, Tensor) or not isinstance(new_type, type) or not issubclass(new_type, Tensor):
        raise TypeError(f"expected a Tensor and a class of tensors, got {type(made).__name__} and {new_type!r}")
    if new_type is not type(made):
        made = made.as_subclass(new_type)
    if isinstance(state, dict) and state.get("_is_buffer") is True and new_type is Tensor:
        return Buffer(made, persistent=bool(state.get("persistent", True)))
    return _with_attributes(made, state)


def _with_attributes(made: Any, state: Any) -> Any:
    if type(made).__setstate__ is not Tensor.__setstate__:
        made.__setstate__(state)
        return made
    for attributes in state if isinstance(state, tuple) else (state,):
        if attributes:
            made.__dict__.update((name, value) for name, value in attributes.items() if name != "_grad")
    return made


def _get_layout(name: str) -> layout:
    """The layout of that name."""
    for known in LAYOUTS:
        if name == repr(known):
            return known
    raise RuntimeError(f"a tensor of layout {name} cannot be loaded: only {', '.join(map(str, LAYOUTS))} can")
