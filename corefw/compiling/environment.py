"""What holds in the process and the thread while a function is recorded, and must hold while it is replayed."""

from __future__ import annotations

from typing import Any

from corefw import dtypes
from corefw.autograd.autocasting.state import state as autocast
from corefw.compiling.tape import Tape
from corefw.dispatch import overriding
from corefw.dispatch.batching.arrays import levels
from corefw.dispatch.registry import registry
from corefw.dispatch.settings import settings
from corefw.graph.grad_mode import mode


def _lower() -> Any:
    """What autocast casts to what."""
    on = autocast.on
    return on and (tuple((d, autocast.dtypes.get(d)) for d in sorted(on)), autocast.caching)


#: what the expressions below name
NAMES = {
    **{"Tape": Tape, "registry": registry, "mode": mode, "overriding": overriding, "levels": levels},
    **{"autocast": autocast, "lower": _lower, "settings": settings},
}
#: while one of these is true, calls can be neither recorded nor replayed
_HINDRANCES = (
    "Tape.active is not None",  # one is being looked at or recorded
    "registry.modes",
    "mode.recorder is not True",  # anomaly detection, hooks of saved tensors
    "mode.call_node is not None",
    "mode.running",  # a backward
    "overriding.modes",
    "levels.running",  # inside of vmap, grad or another transform
)
#: everything else that kernels and their choice depend on
_ENVIRONMENT = ("mode.recording is not False", "mode.inference", "lower()", "settings.attention", "settings.allow_tf32")

hindered = eval(f"lambda: bool({' or '.join(_HINDRANCES)})", NAMES)
environment = eval(f"lambda: ({', '.join(_ENVIRONMENT)})", NAMES)


def changes(then: tuple) -> list[str]:
    """Expressions of which one is true where calls cannot be replayed that were recorded when `environment` gave
    `then`, called ``then`` in them."""
    others = []
    for i, (expression, value) in enumerate(zip(_ENVIRONMENT, then)):
        if value.__class__ is bool:
            others.append(f"not ({expression})" if value else expression)
        elif not value and expression == "lower()":
            others.append("autocast.on")
        else:
            others.append(f"{expression} != then[{i}]")
    return [*_HINDRANCES, *others]


def choices() -> tuple:
    """What else tells which kernels run; it changes only where the registry's `epoch` does."""
    preferred = tuple(tuple(sorted(scope.items())) for scope in registry.preferred)
    return (
        *(preferred, frozenset(registry.disabled), registry.fallback, registry.measuring, registry.threads),
        *(settings.deterministic, settings.deterministic_warn_only, dtypes.get_default_dtype(), len(registry.backends)),
    )
