"""Pickles objects as PyTorch would: tensors by PyTorch's names, their memory left out and referred to."""

from __future__ import annotations

import codecs
import pickle
from collections import OrderedDict
from typing import Any

from corefw import devices, layouts, shapes
from corefw.dispatch.sparse.keys import LayoutKey
from corefw.dispatch.sparse.tensors import is_sparse
from corefw.nn.parameter import Buffer, Parameter
from corefw.serialization import rebuild
from corefw.serialization.names import WRITTEN
from corefw.serialization.storages import STORAGE_TYPES, UNTYPED, WITHOUT_TYPE, Memory, StorageType
from corefw.tensor import Tensor
from corefw.tensor_api.memory import UntypedStorage

# The pickler written in Python, as its `save_global` can be told a name without importing the module it names.
_BASE: Any = pickle._Pickler


class Reference:
    """A storage as a pickle refers to it: type, key, location and number of elements."""

    __slots__ = ("identity",)

    def __init__(self, kind: StorageType, key: str, location: str, numel: int):
        self.identity = ("storage", kind, key, location, numel)


class Pickler(_BASE):
    """Pickles into a file, and collects the memory of the tensors it meets.

    Attributes: ``memories`` from the key of a storage to its Memory.
    """

    def __init__(self, file, protocol: int):
        super().__init__(file, protocol)
        self.memories: dict[str, Memory] = {}
        self._storages: dict[Any, tuple[str, StorageType]] = {}  # key and type, by the memory's identity

    # -- tensors --------------------------------------------------------------------------------------------------
    def _reference(self, tensor: Tensor, untyped: bool) -> tuple[Reference, Memory]:
        memory = Memory(tensor)
        kind = UNTYPED if untyped else STORAGE_TYPES[memory.dtype]
        key, known = self._storages.setdefault(memory.key, (str(len(self._storages)), kind))
        if known is not kind:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different types: "
                f"{known.name} and {kind.name}. Clone one of them first."
            )
        self.memories.setdefault(key, memory)
        numel = memory.flat.nbytes // kind.dtype.itemsize
        return Reference(kind, key, str(memory.dispatch_key.device), numel), memory

    def _tensor(self, tensor: Tensor, requires_grad: bool) -> tuple:
        """The function and arguments that rebuild a tensor, its subclass and attributes aside."""
        dtype, shape = tensor.dispatch_key.dtype, tuple(tensor.array.shape)
        if tensor.dispatch_key.device.type == "meta":
            return rebuild._rebuild_meta_tensor_no_storage, (dtype, shape, tensor.stride(), requires_grad)
        untyped = dtype in WITHOUT_TYPE
        reference, memory = self._reference(tensor, untyped)
        where: tuple = (reference, memory.offset, shape, memory.strides, requires_grad, OrderedDict())
        return (rebuild._rebuild_tensor_v3, (*where, dtype)) if untyped else (rebuild._rebuild_tensor_v2, where)

    @staticmethod
    def _sparse(tensor: Tensor) -> tuple:
        """As `_tensor`, of a sparse tensor; that it requires gradients is not kept, nor is it by PyTorch."""
        pattern, values = tensor.array.pattern, tensor.array.values
        size = shapes.Size(tensor.array.shape)
        data = (*pattern.parts, values, size)
        return rebuild._rebuild_sparse_tensor, (
            pattern.layout,
            (*data, pattern.coalesced) if pattern.layout is layouts.sparse_coo else data,
        )

    def _any_tensor(self, tensor: Tensor) -> tuple:
        if tensor.dispatch_key.__class__ is LayoutKey:
            return self._sparse(tensor) if is_sparse(tensor) else tensor.__reduce_ex__(2)
        kind = type(tensor)
        state = {name: value for name, value in tensor.__dict__.items() if name != "_grad"}
        if kind is Parameter:
            data: tuple = (tensor.detach(), tensor.requires_grad, OrderedDict())
            if state:
                return rebuild._rebuild_parameter_with_state, (*data, state)
            return rebuild._rebuild_parameter, data
        function, arguments = self._tensor(tensor, tensor.requires_grad)
        if kind is Buffer:
            state["_is_buffer"] = True
            kind = Tensor
        if kind is Tensor and not state:
            return function, arguments
        return rebuild._rebuild_from_type_v2, (function, kind, arguments, state)

    # -- what the base asks ---------------------------------------------------------------------------------------
    def reducer_override(self, obj):
        """How to pickle objects that PyTorch pickles in its own way."""
        if isinstance(obj, Tensor):
            return self._any_tensor(obj)
        kind = obj.__class__
        if kind is shapes.Size:
            return shapes.Size, (tuple(obj),)
        if kind is devices.device:
            return devices.device, (obj.type,) if obj.index is None else (obj.type, obj.index)
        if kind is layouts.layout:
            return rebuild._get_layout, (repr(obj),)
        if kind is bytes and not obj and self.proto < 3:
            return codecs.encode, ("", "latin1")  # as bytes that are not empty; PyTorch refuses the class itself
        written = WRITTEN.get(id(obj))
        return NotImplemented if written is None else written[1]  # a name: the base calls `save_global`

    def persistent_id(self, obj):
        """What stands for a storage in the pickle."""
        if obj.__class__ is Reference:
            return obj.identity
        if isinstance(obj, UntypedStorage):
            return self._reference(obj._tensor, untyped=True)[0].identity
        return None

    def save_global(self, obj, name=None):
        """Write a class or function by its name: PyTorch's, if it has one."""
        written = WRITTEN.get(id(obj))
        if written is None:
            return super().save_global(obj, name)
        self.write(pickle.GLOBAL + "\n".join((*written, "")).encode())
        self.memoize(obj)
        return None
