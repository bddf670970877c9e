"""Copies of tensors by Python's own means: the copy module and pickle."""

from __future__ import annotations

import copy

import numpy as np

from corefw import devices, dtypes
from corefw.declarations._shared.factories import new_strided
from corefw.dispatch.registry import dispatch_key_of
from corefw.errors import GradientError
from corefw.graph.nodes import leaf_node
from corefw.shapes import extent
from corefw.tensor import Tensor, new, wrap
from corefw.tensor_api.attach import method
from corefw.tensor_api.interchange import host_array


def _attributes(self: Tensor) -> dict:
    """What users have set on the tensor."""
    return {name: value for name, value in self.__dict__.items() if name != "_grad"}


@method
def __copy__(self) -> Tensor:
    """A leaf over the same memory."""
    made = new(self.__class__)
    made.array, made.dispatch_key, made.view_info, made.version, made.node = (
        self.array,
        self.dispatch_key,
        None,
        self.version,
        None,
    )
    if self.requires_grad:
        made.node = leaf_node(made)
    made.__dict__.update(_attributes(self))
    return made


@method
def __deepcopy__(self, memo: dict) -> Tensor:
    """A leaf with a copy of the memory, of the gradient and of what users have set on it."""
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise GradientError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment. "
            "Use .detach().clone() to copy a computed tensor."
        )
    made = new(self.__class__)
    memo[id(self)] = made
    made.array, made.dispatch_key, made.view_info, made.version, made.node = (
        self.detach().clone().array,
        self.dispatch_key,
        None,
        [0],
        None,
    )
    if self.requires_grad:
        made.node = leaf_node(made)
    made.__dict__.update(copy.deepcopy(_attributes(self), memo))
    if self._grad is not None:
        made._grad = copy.deepcopy(self._grad, memo)
    return made


# -- pickle -----------------------------------------------------------------------------------------------------------
def rebuild(
    host, dtype: str, where: str, shape: tuple, strides: tuple, requires_grad: bool, cls: type[Tensor]
) -> Tensor:
    """A tensor from what `Tensor.__reduce_ex__` gave; `host` holds the elements, None on the meta device."""
    d = dtypes.of_name(dtype)
    dispatch_key = dispatch_key_of(devices.device(where), d)
    if host is None:
        extent(shape, strides)  # refuses negative ones
        made = new_strided(dispatch_key, shape, strides)
    else:
        array = host.view(d.numpy) if host.dtype != d.numpy else host
        made = wrap(dispatch_key.runtime.upload(array, dispatch_key.device.index), dispatch_key)
    if cls is not Tensor:
        made = made.as_subclass(cls)
    if requires_grad:
        made.node = leaf_node(made)
    return made


@method
def __reduce_ex__(self, proto):
    """For pickle: elements, dtype, device, strides and requires_grad; gradients and history stay behind."""
    dispatch_key = self.dispatch_key
    host = None
    if dispatch_key.device.type != "meta":
        host = host_array(self)
        if dispatch_key.dtype is dtypes.bfloat16:
            host = host.view(np.uint16)
    arguments = (
        host,
        dispatch_key.dtype.name,
        str(dispatch_key.device),
        tuple(self.array.shape),
        self.stride(),
        self.requires_grad,
        self.__class__,
    )
    return rebuild, arguments, _attributes(self) or None


@method
def __setstate__(self, state: dict) -> None:
    self.__dict__.update(state)
