"""The engines that are installed: found by entry point, loaded when one is asked for, a broken one kept with its
reason."""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

from corefw.dispatch.backend import Backend, Kernel
from corefw.dispatch.registry import registry
from corefw.distributed.engine import API_VERSION, Engine
from corefw.errors import BackendError, did_you_mean

GROUP = "corefw.engines"
#: the methods of a communicator that are ops, called "collective_" and so, of corefw/declarations/collective.py
COLLECTIVES = (
    "all_reduce", "reduce", "broadcast", "all_gather", "gather", "scatter", "reduce_scatter", "all_to_all", "send",
    "receive",
)  # fmt: skip
_lock = threading.RLock()
_engines: dict[str, Engine] = {}
_failures: dict[str, Exception] = {}
_tried: set[str] = set()


class Specification:
    """The hook of an engine plug-in."""

    def corefw_engine(self) -> Engine:
        """Return what the plug-in offers. Must not raise where something is missing: return the Engine with
        ``unusable`` set to the reason."""
        raise NotImplementedError


@cache
def _manager() -> Any:
    import pluggy

    manager = pluggy.PluginManager("corefw")
    pluggy.HookspecMarker("corefw")(Specification.corefw_engine)
    manager.add_hookspecs(Specification)
    return manager


def register(plugin: Any, name: str) -> Engine:
    """Register a plug-in, a module or an instance with the hook ``corefw_engine``; returns what it offers.

    Raises:
        BackendError: the hook is missing or wrong, or written for another interface.
    """
    with _lock:
        manager = _manager()
        manager.register(plugin, name)
        try:
            manager.check_pending()
            hooks = [h for h in manager.hook.corefw_engine.get_hookimpls() if h.plugin is plugin]
            engine = hooks[0].function() if hooks else None
            if not isinstance(engine, Engine):
                raise BackendError(f"engine '{name}': its hook corefw_engine is missing or returned no Engine")
            if engine.api[0] != API_VERSION[0] or engine.api[1] > API_VERSION[1]:
                raise BackendError(
                    f"engine '{name}' was written for interface {engine.api[0]}.{engine.api[1]}; this corefw has "
                    f"{API_VERSION[0]}.{API_VERSION[1]}"
                )
        except Exception:
            manager.unregister(name=name)
            raise
        _engines[engine.name] = engine
        if not engine.unusable:
            kernels = [Kernel(f"collective_{name}", _started(name)) for name in COLLECTIVES]
            registry.add_backend(
                Backend(engine.name, engine.version, engine.devices, dict.fromkeys(engine.devices, kernels))
            )
        return engine


def _started(name: str) -> Any:
    """The kernel of a collective: it lets the group's communicator begin it, whatever engine that is of."""

    def kernel(*arguments: Any) -> None:
        arguments[-1].begin(name, *arguments[:-1])

    kernel.__name__ = kernel.__qualname__ = name
    return kernel


def load(name: str | None = None) -> dict[str, Engine]:
    """All engines, the installed ones loaded; with a name, that one alone."""
    from importlib.metadata import entry_points

    with _lock:
        for entry in entry_points(group=GROUP):
            if entry.name in _tried or entry.name in _engines or name not in (None, entry.name):
                continue
            _tried.add(entry.name)
            try:
                register(entry.load(), entry.name)
            except Exception as error:  # whatever a plug-in does wrong stays with the plug-in
                _failures[entry.name] = error
    return _engines


def usable(name: str) -> bool:
    """Whether there is an engine of that name that can run here."""
    engine = load(name).get(name)
    return engine is not None and not engine.unusable


def find(name: str) -> Engine:
    """The engine of that name.

    Raises:
        BackendError: it is not installed, broken or unusable here; the text says which, and which there are.
    """
    there = load(name)
    if name not in there:
        there = load()
    if name in _failures:
        raise BackendError(f"engine '{name}' is broken: {_failures[name]}") from _failures[name]
    if name not in there:
        known = ", ".join(sorted(there)) or "none: `pip install corefw-mpi` brings 'mpi'"
        raise BackendError(f"there is no engine '{name}'{did_you_mean(name, there)}; installed: {known}")
    if there[name].unusable:
        raise BackendError(f"engine '{name}' cannot be used here: {there[name].unusable}")
    return there[name]


def for_device(device_type: str) -> Engine:
    """The first usable engine, by name, that moves arrays of a device type; engines that a launcher started first."""
    there = [e for e in load().values() if device_type in e.devices and not e.unusable]
    if not there:
        raise BackendError(f"no engine for tensors on '{device_type}' is installed (`pip install corefw-mpi` for cpu)")
    return min(there, key=lambda engine: (not engine.launched(), engine.name))
