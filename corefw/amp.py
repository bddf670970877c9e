"""Automatic mixed precision, which is not here: what asks for it is refused, what turns it off works."""

from __future__ import annotations

import functools
import warnings
from typing import Any

from corefw import cuda
from corefw.dtypes import bfloat16, dtype, float16

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
_REFUSED = (
    "{}: there is no automatic mixed precision here, so nothing would change its dtype; convert the model and its "
    "inputs (model.bfloat16()), or pass enabled=False"
)


def _without_gpu(kind: str, asked: bool, what: str) -> bool:
    """Whether what was asked for a GPU is turned off, with PyTorch's warning, because there is none."""
    if not asked or kind != "cuda" or cuda.is_available():
        return False
    warnings.warn(f"{what} on device 'cuda', but CUDA is not available.  Disabling.", UserWarning, stacklevel=3)
    return True


class autocast:
    """A block, or a decorator, in which ops choose their dtypes; only turned off, where it changes nothing.

    Args:
        device_type: "cpu", "cuda" or another.
        dtype: the lower precision.
        enabled: whether to choose dtypes at all; for "cuda" without a GPU it is turned off with a warning, as in
            PyTorch.
        cache_enabled: whether converted weights are kept; without effect.

    Raises:
        NotImplementedError: it is enabled.

    >>> import corefw as torch
    >>> with torch.amp.autocast("cpu", enabled=False):
    ...     print((torch.ones(2, 2) @ torch.ones(2)).dtype)
    torch.float32
    """

    def __init__(
        self, device_type: str, dtype: dtype | None = None, enabled: bool = True, cache_enabled: bool | None = None
    ):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if enabled and not _without_gpu(device_type, enabled, "User provided device_type of 'cuda'"):
            raise NotImplementedError(_REFUSED.format("autocast"))
        self.device, self.fast_dtype = device_type, dtype

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *exception: object) -> None: ...

    def __call__(self, function: Any) -> Any:
        @functools.wraps(function)
        def inside(*arguments: Any, **options: Any) -> Any:
            with self:
                return function(*arguments, **options)

        return inside


def is_autocast_available(device_type: str) -> bool:
    """False: no device type has automatic mixed precision."""
    return False


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """False: it never is."""
    return False


is_autocast_cpu_enabled = is_autocast_cache_enabled = is_autocast_enabled


def get_autocast_dtype(device_type: str) -> dtype:
    """The lower precision that PyTorch's autocast would choose on a type of devices, were it enabled.

    >>> import corefw as torch
    >>> torch.get_autocast_dtype("cpu"), torch.get_autocast_dtype("cuda")
    (torch.bfloat16, torch.float16)
    """
    return bfloat16 if device_type == "cpu" else float16


def get_autocast_cpu_dtype() -> dtype:
    """The same of the CPU."""
    return get_autocast_dtype("cpu")


def get_autocast_gpu_dtype() -> dtype:
    """The same of a GPU."""
    return get_autocast_dtype("cuda")


class GradScaler:
    """Scales losses against underflow of half precision; only turned off, where it passes everything on.

    Args:
        device: the device type; for "cuda" without a GPU it is turned off with a warning, as in PyTorch.
        init_scale, growth_factor, backoff_factor, growth_interval: of the scale.
        enabled: whether to scale.

    Raises:
        NotImplementedError: it is enabled.
    """

    def __init__(
        self, device: str = "cuda", init_scale: float = 65536.0, growth_factor: float = 2.0,
        backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True,
    ):  # fmt: skip
        if enabled and not _without_gpu(device, enabled, "GradScaler is enabled"):
            raise NotImplementedError(_REFUSED.format("GradScaler"))

    def is_enabled(self) -> bool:
        """False: it only passes on."""
        return False

    def scale(self, outputs: Any) -> Any:
        """The outputs themselves."""
        return outputs

    def unscale_(self, optimizer: Any) -> None:
        """Nothing was scaled."""

    def step(self, optimizer: Any, *arguments: Any, **options: Any) -> Any:
        """The optimizer's own step."""
        return optimizer.step(*arguments, **options)

    def update(self, new_scale: Any = None) -> None:
        """There is no scale."""

    def get_scale(self) -> float:
        """1.0."""
        return 1.0

    def state_dict(self) -> dict[str, Any]:
        """An empty dict, as PyTorch's when it is turned off."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Nothing to load."""


def custom_fwd(fwd: Any = None, *, device_type: str = "cuda", cast_inputs: dtype | None = None) -> Any:
    """The forward of an `autograd.Function` itself, or a decorator; PyTorch's too changes nothing without autocast."""
    return fwd if fwd is not None else functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)


def custom_bwd(bwd: Any = None, *, device_type: str = "cuda") -> Any:
    """The backward of an `autograd.Function` itself, or a decorator."""
    return bwd if bwd is not None else functools.partial(custom_bwd, device_type=device_type)
