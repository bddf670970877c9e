"""How tensors travel between processes: by the open file of their memory, or as copies."""

from __future__ import annotations

import sys
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np

from corefw import dtypes
from corefw.errors import GradientError
from corefw.nn.parameter import Buffer, Parameter
from corefw.shared_memory import SharedMemory, Sharing
from corefw.tensor import Tensor
from corefw.tensor_api.interchange import from_numpy

if sys.platform != "win32":
    from multiprocessing.reduction import DupFd

_STRATEGIES = {"file_system"} if sys.platform == "win32" else {"file_descriptor", "file_system"}


def get_all_sharing_strategies() -> set[str]:
    """The ways in which tensors travel: "file_descriptor" shares their memory; "file_system", for systems that permit
    few open files, sends copies of what is not inherited."""
    return {*_STRATEGIES}


def get_sharing_strategy() -> str:
    """The way in use."""
    return Sharing.strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Choose the way.

    Args:
        new_strategy: one of `get_all_sharing_strategies`.

    Raises:
        ValueError: there is no such way.
    """
    if new_strategy not in _STRATEGIES:
        raise ValueError(f"set_sharing_strategy: {new_strategy!r} is none of {sorted(_STRATEGIES)}")
    Sharing.strategy = new_strategy


def _reduce(tensor: Tensor) -> tuple:
    """What stands for a tensor in a message: the open file of its memory, or what pickle makes of it."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise GradientError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support "
            "crossing process boundaries.  If you just want to transfer the data, call detach() on the tensor before "
            "serializing (e.g., putting it on the queue)."
        )
    memory = _shared(tensor) if Sharing.strategy == "file_descriptor" else None
    if memory is None:
        return tensor.__reduce_ex__(2)
    kind = type(tensor)
    facts = (
        tensor.dtype.name,
        tuple(tensor.shape),
        tensor.stride(),
        tensor.storage_offset(),
        tensor.requires_grad,
        kind,
        getattr(tensor, "persistent", True),
    )
    return _rebuild, (DupFd(memory.descriptor), len(memory), *facts)


def _shared(tensor: Tensor) -> SharedMemory | None:
    """The shared memory of a tensor, which is moved there if it shows the whole of its own; None if it cannot be."""
    if tensor.dispatch_key.device.type != "cpu" or not tensor.numel():
        return None
    if not tensor.is_shared():
        if tensor.untyped_storage().nbytes() != tensor.nbytes or tensor.view_info is not None:
            return None
        tensor.share_memory_()
    found: Any = tensor.array
    while isinstance(found, np.ndarray):
        found = found.base
    return found if isinstance(found, SharedMemory) and found.descriptor >= 0 else None


def _rebuild(
    descriptor: Any, size: int, dtype: str, shape: tuple, strides: tuple, offset: int, requires_grad: bool, kind: type,
    persistent: bool,
) -> Tensor:  # fmt: skip
    """The tensor of a message, over the same memory."""
    memory, d = SharedMemory.of_descriptor(descriptor.detach(), size), dtypes.of_name(dtype)
    steps = tuple(step * d.itemsize for step in strides)
    flat = np.ndarray((size // d.itemsize,), d.numpy, memory)
    made = from_numpy(np.ndarray(shape, d.numpy, flat, offset * d.itemsize, steps))
    if kind is Parameter:
        return Parameter(made, requires_grad)
    if kind is Buffer:
        return Buffer(made, persistent=persistent)
    return made.requires_grad_() if requires_grad else made


def register() -> None:
    """Let tensors travel so from now on; classes derived from them travel as pickle makes them."""
    for kind in (Tensor, Parameter, Buffer):
        ForkingPickler.register(kind, _reduce)
