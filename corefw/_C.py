"""The few functions that libraries call of PyTorch's compiled module; it has no others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from corefw.accelerator import current_accelerator
from corefw.devices import device
from corefw.dispatch.batching.arrays import levels
from corefw.dispatch.overriding import disabled as _disabled_torch_function_impl  # noqa: F401, a name of this module
from corefw.dtypes import dtype
from corefw.layouts import memory_format
from corefw.tensor import Tensor

__all__: list[str] = []
_TensorMeta = type(Tensor)


def _log_api_usage_once(event: str) -> None:
    """Nothing is counted."""


def _get_tracing_state() -> None:
    """None: nothing is traced."""


def _are_functorch_transforms_active() -> bool:
    """Whether a `func.vmap` runs, in which tensors have no numbers of their own."""
    return bool(levels.running)


def _get_accelerator(check: bool | None = None) -> device:
    """The type of the accelerator, the CPU if there is none."""
    return current_accelerator() or device("cpu")


def _parse_to(*arguments: Any, non_blocking: bool = False, copy: bool = False, **named: Any) -> tuple:
    """The device, the dtype, whether not to wait, and the memory format that arguments of `Tensor.to` name.

    >>> _parse_to("cpu")[:2], _parse_to(device="meta", dtype=None)[0]
    ((device(type='cpu'), None), device(type='meta'))
    """
    where, what, order = named.get("device"), named.get("dtype"), named.get("memory_format")
    for argument in arguments:
        if isinstance(argument, Tensor):
            where, what = argument.device, argument.dtype
        elif isinstance(argument, dtype):
            what = argument
        elif isinstance(argument, memory_format):
            order = argument
        elif isinstance(argument, bool):
            non_blocking = argument
        elif argument is not None:
            where = argument
    return None if where is None else device(where), what, non_blocking, order


_nn = SimpleNamespace(_parse_to=_parse_to)
