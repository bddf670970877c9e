"""`autocast`: a block in which ops choose the dtype that they compute in."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from corefw import cuda
from corefw.autograd.autocasting import casting as _casting  # noqa: F401  (which puts the stand-ins in)
from corefw.autograd.autocasting.policies import eligible, lower_dtype
from corefw.autograd.autocasting.state import Settings, enter, leave, settle, state
from corefw.devices import device
from corefw.dtypes import bfloat16, dtype, float16
from corefw.tensor import Tensor

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
_LOWER = (bfloat16, float16)


def is_autocast_available(device_type: str) -> bool:
    """Whether ops can be cast on a type of devices: where they compute at all.

    >>> import corefw as torch
    >>> torch.amp.is_autocast_available("cpu"), torch.amp.is_autocast_available("meta")
    (True, False)
    """
    return device(device_type).type != "meta"


class autocast:
    """A block, or a decorator, in which ops choose their dtypes: products compute in a lower precision, what needs
    range or adds up errors in float32; parameters and their gradients stay as they are ([the lists](precision.md)).

    In-place forms and calls with `out` are not cast. Backwards run with autocast off. Each thread has its own setting.

    Args:
        device_type: "cpu", "cuda" or another: tensors on such devices are cast.
        dtype: the lower precision, bfloat16 or float16; by default that of `get_autocast_dtype`.
        enabled: whether to cast; an inner block with False turns it off. For "cuda" without a GPU it is turned off with
            a warning, as in PyTorch.
        cache_enabled: whether the cast of a weight is kept until the outermost block ends.

    Raises:
        ValueError: `device_type` is no str.
        RuntimeError: nothing can be cast on such devices.

    >>> import corefw as torch
    >>> weight = torch.ones(2, 2, requires_grad=True)
    >>> with torch.autocast("cpu"):
    ...     product = torch.ones(2, 2) @ weight
    ...     loss = torch.nn.functional.mse_loss(product, torch.zeros(2, 2))
    >>> product.dtype, loss.dtype
    (torch.bfloat16, torch.float32)
    >>> loss.backward()
    >>> weight.grad.dtype
    torch.float32
    """

    def __init__(
        self, device_type: str, dtype: dtype | None = None, enabled: bool = True, cache_enabled: bool | None = None
    ):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if not is_autocast_available(device_type):
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        self.device = device_type
        self.fast_dtype = lower_dtype(device_type) if dtype is None else dtype
        self._cache_enabled = state.caching if cache_enabled is None else cache_enabled
        self._enabled = enabled
        if enabled and device_type == "cuda" and not cuda.is_available():
            warnings.warn(
                "User provided device_type of 'cuda', but CUDA is not available. Disabling autocast.",
                UserWarning,
                stacklevel=2,
            )
            self._enabled = False
        elif enabled and self.fast_dtype not in _LOWER:
            warnings.warn(
                f"In {device_type.upper()} autocast, but the target dtype {self.fast_dtype} is not supported. "
                f"Disabling autocast. Supported are {' and '.join(map(str, _LOWER))}.",
                UserWarning,
                stacklevel=2,
            )
            self._enabled = False

    def __enter__(self) -> autocast:
        on = state.on | {self.device} if self._enabled else state.on - {self.device}
        enter(Settings(on, {**state.dtypes, self.device: self.fast_dtype}, self._cache_enabled))
        return self

    def __exit__(self, *exception: object) -> None:
        leave()

    def __call__(self, function: Callable) -> Callable:
        if not callable(function):
            raise TypeError(
                f"autocast()(func) requires a callable, but got {type(function).__name__}; a block is written "
                "`with torch.autocast(device_type):`"
            )

        @functools.wraps(function)
        def inside(*arguments: Any, **options: Any) -> Any:
            with self:
                return function(*arguments, **options)

        return inside


# -- settings ---------------------------------------------------------------------------------------------------------
def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Whether ops on a type of devices ("cuda" by default, as in PyTorch) are cast now, in this thread."""
    return (device_type or "cuda") in state.on


def is_autocast_cpu_enabled() -> bool:
    """The same of the CPU."""
    return is_autocast_enabled("cpu")


def set_autocast_enabled(device_type: str | bool, enabled: bool | None = None) -> None:
    """Cast ops on a type of devices from now on, in this thread, or cease to; `autocast` does it for a block.

    Args:
        device_type: the type; PyTorch's older form, only a bool, means "cuda".
        enabled: whether to cast.
    """
    kind, wanted = ("cuda", device_type) if enabled is None else (device_type, enabled)
    state.on = state.on | {str(kind)} if wanted else state.on - {str(kind)}
    settle()


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """The same of the CPU."""
    set_autocast_enabled("cpu", enabled)


def get_autocast_dtype(device_type: str) -> dtype:
    """The lower precision of a type of devices.

    >>> import corefw as torch
    >>> torch.get_autocast_dtype("cpu"), torch.get_autocast_dtype("cuda")
    (torch.bfloat16, torch.float16)
    """
    return lower_dtype(device_type)


def get_autocast_cpu_dtype() -> dtype:
    """The same of the CPU."""
    return lower_dtype("cpu")


def get_autocast_gpu_dtype() -> dtype:
    """The same of a GPU."""
    return lower_dtype("cuda")


def set_autocast_dtype(device_type: str, dtype: dtype) -> None:
    """Choose the lower precision of a type of devices, in this thread."""
    state.dtypes = {**state.dtypes, device_type: dtype}


def set_autocast_cpu_dtype(dtype: dtype) -> None:
    """The same of the CPU."""
    set_autocast_dtype("cpu", dtype)


def set_autocast_gpu_dtype(dtype: dtype) -> None:
    """The same of a GPU."""
    set_autocast_dtype("cuda", dtype)


def is_autocast_cache_enabled() -> bool:
    """Whether casts of weights are kept until the outermost block ends."""
    return state.caching


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Keep casts of weights, or cease to."""
    state.caching = enabled


def clear_autocast_cache() -> None:
    """Forget the casts of weights."""
    state.cache.clear()


def autocast_increment_nesting() -> int:
    """Begin a block without `autocast`; casts of weights are kept until it ends. Returns how deep it is."""
    state.nesting += 1
    return state.nesting


def autocast_decrement_nesting() -> int:
    """End such a block. Returns how many are left."""
    state.nesting -= 1
    settle()
    return state.nesting


# -- functions with a backward of their own ---------------------------------------------------------------------------
def _cast(value: Any, device_type: str, to: dtype) -> Any:
    """Tensors, and those in containers, in another dtype where autocast may change it."""
    if isinstance(value, Tensor):
        return value.to(to) if eligible(value, device_type) else value
    if isinstance(value, Mapping):
        return {name: _cast(one, device_type, to) for name, one in value.items()}
    if isinstance(value, list | tuple) and not isinstance(value, np.ndarray):
        return type(value)(_cast(one, device_type, to) for one in value)
    return value


def custom_fwd(fwd: Callable | None = None, *, device_type: str, cast_inputs: dtype | None = None) -> Any:
    """A decorator of the forward of an `autograd.Function`, whose backward has `custom_bwd`.

    Args:
        device_type: of which devices autocast is meant.
        cast_inputs: where autocast is on, cast floating arguments to this dtype and run the forward with autocast off.
            Without it the ops of the forward are cast.
    """
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(ctx: Any, *arguments: Any, **named: Any) -> Any:
        on = is_autocast_enabled(device_type)
        ctx._dtype = lower_dtype(device_type)
        ctx._fwd_used_autocast = on and cast_inputs is None
        if not on or cast_inputs is None:
            return fwd(ctx, *arguments, **named)
        with autocast(device_type, enabled=False):
            cast = _cast((arguments, named), device_type, cast_inputs)
            return fwd(ctx, *cast[0], **cast[1])

    return forward


def custom_bwd(bwd: Callable | None = None, *, device_type: str) -> Any:
    """A decorator of the backward of an `autograd.Function`, whose forward has `custom_fwd`: ops are cast in it if they
    were cast in the forward.

    Args:
        device_type: as for the forward.
    """
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(ctx: Any, *gradients: Any) -> Any:
        with autocast(device_type, ctx._dtype, ctx._fwd_used_autocast):
            return bwd(ctx, *gradients)

    return backward
