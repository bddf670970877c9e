"""The older way to choose the dtype and the device of new tensors at once."""

from __future__ import annotations

from typing import Any

from corefw import cuda
from corefw.devices import set_default_device
from corefw.dispatch.constants import set_default_dtype
from corefw.tensor_api.legacy import type_named

__all__ = ["set_default_tensor_type"]


def set_default_tensor_type(t: Any) -> None:
    """Set the dtype of tensors made from Python floats, and the device of new tensors, by a tensor type.

    Args:
        t: a type such as ``torch.DoubleTensor``, or its name, ``"torch.cuda.FloatTensor"``.

    Raises:
        TypeError: it is no tensor type, of no floating dtype, or its device is not available.

    >>> import corefw as torch
    >>> torch.set_default_tensor_type(torch.DoubleTensor)
    >>> torch.ones(1).dtype
    torch.float64
    >>> torch.set_default_tensor_type("torch.FloatTensor")
    """
    found = type_named(t)
    if found is None:
        raise TypeError(f"set_default_tensor_type: invalid type {t!r}; give a tensor type or its name")
    dtype, kind = found
    if not dtype.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    if kind == "cuda" and not cuda.is_available():
        raise TypeError(f"type {t if isinstance(t, str) else t.__name__} not available: there is no CUDA device")
    set_default_dtype(dtype)
    set_default_device(kind)
