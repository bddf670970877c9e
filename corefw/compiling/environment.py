"""What holds in the process and the thread while a function is recorded, and must hold while it is replayed."""

from __future__ import annotations

from corefw import dtypes
from corefw.autograd.autocasting.state import state as autocast
from corefw.compiling.tape import Tape
from corefw.dispatch import overriding
from corefw.dispatch.batching.arrays import levels
from corefw.dispatch.registry import registry
from corefw.dispatch.settings import settings
from corefw.graph.grad_mode import mode


def hindrance() -> str:
    """Why calls can be neither recorded nor replayed now; "" if they can."""
    if Tape.active is not None:
        return "a call is looked at or recorded"
    if registry.modes:
        return f"the mode {type(registry.modes[-1]).__name__} is on"
    if mode.recorder is not True or mode.call_node is not None:
        return "anomaly detection or hooks of saved tensors are on"
    if mode.running:
        return "a backward is running"
    if overriding.modes:
        return "a mode of __torch_function__ is on"
    if levels.running:
        return "it is called inside of func.vmap, func.grad or another transform"
    return ""


def environment() -> tuple:
    """Everything else that kernels and their choice depend on, cheap to compare."""
    on = autocast.on
    lower = (tuple((d, autocast.dtypes.get(d)) for d in sorted(on)), autocast.caching) if on else None
    return mode.recording is not False, mode.inference, lower, settings.attention, settings.allow_tf32


def choices() -> tuple:
    """What else tells which kernels run; it changes only where the registry's `epoch` does."""
    preferred = tuple(tuple(sorted(scope.items())) for scope in registry.preferred)
    return (
        *(preferred, frozenset(registry.disabled), registry.fallback, registry.measuring, registry.threads),
        *(settings.deterministic, settings.deterministic_warn_only, dtypes.get_default_dtype(), len(registry.backends)),
    )
