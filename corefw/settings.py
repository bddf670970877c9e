"""Process-wide settings: threads, determinism, warnings; the modules of devices."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from corefw.devices import device as _Device
from corefw.dispatch.registry import registry
from corefw.dispatch.settings import settings
from corefw.tracebacks import Repetition


def get_num_threads() -> int:
    """How many threads kernels may use.

    >>> get_num_threads() >= 1
    True
    """
    return registry.threads


def _check_number(name: str, num: int) -> None:
    if not isinstance(num, int) or isinstance(num, bool):
        raise TypeError(f"{name} expects an int, but got {type(num).__name__}")
    if num <= 0:
        raise RuntimeError(f"{name} expects a positive integer, but got {num}")


def set_num_threads(num: int) -> None:
    """Set how many threads kernels may use; backends that have threads of their own are told. RuntimeError unless
    positive."""
    _check_number("set_num_threads", num)
    registry.set_num_threads(num)


def get_num_interop_threads() -> int:
    """How many ops may run at the same time on the CPU, as `set_num_interop_threads` was told: one if it was not.

    >>> get_num_interop_threads()
    1
    """
    return settings.interop_threads


def set_num_interop_threads(num: int) -> None:
    """Note how many ops may run at the same time on the CPU. Ops run one after the other whatever the number is: the
    threads of `set_num_threads` share the work of one. RuntimeError unless positive."""
    _check_number("set_num_interop_threads", num)
    settings.interop_threads = num


def set_warn_always(b: bool, /) -> None:
    """Whether corefw repeats a warning of a line that has warned before; Python shows it once by default.

    >>> import corefw as torch
    >>> torch.set_warn_always(True)
    >>> torch.is_warn_always_enabled()
    True
    >>> torch.set_warn_always(False)
    """
    if not isinstance(b, bool):
        raise TypeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    Repetition.always = b


def is_warn_always_enabled() -> bool:
    """Whether warnings are repeated, as `set_warn_always` was told."""
    return Repetition.always


def get_device_module(device: _Device | str | None = None) -> ModuleType:
    """The module of a type of devices, such as `corefw.cuda`.

    Args:
        device: a device, or a type; the accelerator of this machine if missing.

    Raises RuntimeError for a type that has no module.

    >>> import corefw as torch
    >>> torch.get_device_module("cuda:0") is torch.cuda
    True
    """
    if device is None:
        kind = next((found for found in registry.runtimes if _module_name(found)), "cpu")
    elif isinstance(device, (str, _Device)):
        kind = _Device(device).type
    else:
        raise RuntimeError(f"Invalid value of device '{device}', expect torch.device, str, or None")
    name = _module_name(kind)
    if not name:
        raise RuntimeError(f"Device '{kind}' does not have a corresponding module registered as 'torch.{kind}'.")
    return import_module(name)


def _module_name(kind: str) -> str:
    """The module of a type of devices; "" if there is none."""
    name = f"corefw.{kind}"
    return name if find_spec(name) else ""


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for kernels whose results do not depend on the order of execution; those of corefw's own CPU backends never
    do. Kernels that their backend declares not to be deterministic are not asked, as if they were not there.

    Args:
        mode: whether to ask.
        warn_only: whether an op that no other kernel computes is computed by such a one, with a warning at each call.

    >>> import corefw as torch
    >>> torch.use_deterministic_algorithms(True, warn_only=True)
    >>> torch.is_deterministic_algorithms_warn_only_enabled()
    True
    >>> torch.use_deterministic_algorithms(False)
    """
    settings.deterministic, settings.deterministic_warn_only = bool(mode), bool(warn_only)
    registry.forget()


def are_deterministic_algorithms_enabled() -> bool:
    """Whether deterministic kernels were asked for."""
    return settings.deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether ops without deterministic kernels warn where these were asked for."""
    return settings.deterministic_warn_only


#: by number the names of what is done where an op has no deterministic kernel
_DEBUG_MODES = ("default", "warn", "error")


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """`use_deterministic_algorithms` by one value.

    Args:
        debug_mode: 0 or "default" for any kernels; 1 or "warn" for deterministic ones, with a warning where there are
            none; 2 or "error" for an error there.

    >>> import corefw as torch
    >>> torch.set_deterministic_debug_mode("warn")
    >>> torch.get_deterministic_debug_mode()
    1
    >>> torch.set_deterministic_debug_mode(0)
    """
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if debug_mode in _DEBUG_MODES:
        debug_mode = _DEBUG_MODES.index(str(debug_mode))
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(
            f"invalid value of debug_mode, expected 0, 1, 2 or one of {', '.join(_DEBUG_MODES)}, but got {debug_mode}"
        )
    use_deterministic_algorithms(debug_mode != 0, warn_only=debug_mode == 1)


def get_deterministic_debug_mode() -> int:
    """What `set_deterministic_debug_mode` was given, as a number.

    >>> import corefw as torch
    >>> torch.get_deterministic_debug_mode()
    0
    """
    return 0 if not settings.deterministic else 1 if settings.deterministic_warn_only else 2


def set_flush_denormal(mode: bool) -> bool:
    """Whether subnormal numbers are flushed to 0 from now on: they never are, so that all backends agree.

    Args:
        mode: what is asked for.

    Returns:
        False: as PyTorch's on processors that cannot.

    >>> import corefw as torch
    >>> torch.set_flush_denormal(True)
    False
    """
    return False


_PRECISIONS = ("highest", "high", "medium")


def get_float32_matmul_precision() -> str:
    """The precision asked for in `set_float32_matmul_precision`.

    >>> get_float32_matmul_precision()
    'highest'
    """
    return "high" if settings.allow_tf32 else "highest"


def set_float32_matmul_precision(precision: str) -> None:
    """Set how precise matrix products of float32 must be.

    Args:
        precision: "highest" computes in float32; "high" and "medium" let devices that can (not the CPU) round the
            factors to TensorFloat-32, with 10 bits after the binary point.
    """
    if precision not in _PRECISIONS:
        raise RuntimeError(f"set_float32_matmul_precision expects one of {', '.join(_PRECISIONS)}, got {precision!r}")
    settings.allow_tf32 = precision != "highest"
