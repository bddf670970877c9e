"""Discovery of backends: finds them by entry point, loads them when a device first needs them, keeps failures apart."""

from __future__ import annotations

import threading
import warnings
from types import ModuleType
from typing import TYPE_CHECKING, Any

from corefw.devices import on_unknown_type
from corefw.dispatch.backend import Backend
from corefw.dispatch.registry import registry
from corefw.errors import BackendError, SettingError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "corefw.backends"
_lock = threading.RLock()
_loaded: set[str] = set()  # names of entry points that were tried
_manager: Any = None  # the pluggy manager, made with the first plugin


class Specification:
    """The hooks of a backend plugin."""

    def corefw_backend(self) -> Backend:
        """Return what the plugin offers. Must not raise where the hardware is missing: return the Backend with
        ``unusable`` set to the reason."""
        raise NotImplementedError


def manager():
    """The pluggy manager that holds the loaded plugins."""
    global _manager
    if _manager is None:
        import pluggy

        _manager = pluggy.PluginManager("corefw")
        pluggy.HookspecMarker("corefw")(Specification.corefw_backend)
        _manager.add_hookspecs(Specification)
    return _manager


def register(plugin: ModuleType | object, name: str) -> Backend:
    """Register a plugin object (a module or an instance with the hook ``corefw_backend``) under `name`; returns what it
    offers.

    Raises BackendError if the hook is missing, wrong, or the backend contradicts one that is there.
    """
    with _lock:
        pm = manager()
        try:
            pm.register(plugin, name)
            pm.check_pending()
            hooks = [h for h in pm.hook.corefw_backend.get_hookimpls() if h.plugin is plugin]
            if not hooks:
                raise BackendError(f"plugin '{name}' does not implement the hook corefw_backend")
            backend = hooks[0].function()
            if not isinstance(backend, Backend):
                raise BackendError(f"plugin '{name}': corefw_backend returned {type(backend).__name__}, not a Backend")
            registry.add_backend(backend)
            return backend
        except Exception as error:
            if pm.get_plugin(name) is not None:
                pm.unregister(name=name)
            if isinstance(error, BackendError):
                raise
            raise BackendError(f"plugin '{name}' failed: {type(error).__name__}: {error}") from error


def _device_and_name(entry: EntryPoint) -> tuple[str | None, str]:
    """An entry point "<device>.<backend>" may serve that device; one without a dot may serve any."""
    device_type, dot, name = entry.name.rpartition(".")
    return (device_type if dot else None), name


def _load_entry(entry: EntryPoint) -> None:
    key = f"{entry.name}={entry.value}"
    if key in _loaded:
        return
    _loaded.add(key)
    name = _device_and_name(entry)[1]
    if name in registry.disabled:
        return
    try:
        module = entry.load()
        if any(plugin is module for _, plugin in manager().list_name_plugin()):
            return  # the same plugin, found under another device
        backend = register(module, name)
    except SettingError:  # the user's mistake, not the plugin's: raised whenever the plugin is asked for
        _loaded.remove(key)
        raise
    except Exception as error:  # whatever a plugin does wrong stays with the plugin
        registry.failures[name] = error
        return
    _warn_of_ties(backend)


def _warn_of_ties(backend: Backend) -> None:
    """Tell the user who comes first by nothing but its name, and how to choose."""
    for (kind, other), ops in registry.ties(backend.name).items():
        first, second = sorted((backend.name, other))
        more = f" and {len(ops) - 1} other ops" if len(ops) > 1 else ""
        warnings.warn(
            f"backends '{first}' and '{second}' both offer {ops[0]}{more} on {kind} with priority {backend.priority}: "
            f"'{first}' is asked first, by its name. Choose with COREFW_BACKENDS=\"{kind}={second},{first}\", or for "
            f'one op with COREFW_OPS="{ops[0]}@{kind}={second}".',
            stacklevel=2,
        )


def _is_foreign(entry: EntryPoint) -> bool:
    return entry.dist is None or entry.dist.name != "corefw"


def load(device_type: str | None) -> None:
    """Load the plugins that may serve a device type; all of them for None. A broken one is kept with its reason."""
    from importlib.metadata import entry_points  # a sixth of the time that `import corefw` takes otherwise

    with _lock:
        # Our own first: of two that contradict each other, the later one is refused.
        for entry in sorted(entry_points(group=GROUP), key=_is_foreign):
            if device_type is None or _device_and_name(entry)[0] in (None, device_type):
                _load_entry(entry)


def names() -> set[str]:
    """The backends that are installed, loaded or not."""
    from importlib.metadata import entry_points

    return {_device_and_name(entry)[1] for entry in entry_points(group=GROUP)} | {*registry.backends}


registry.load = load
on_unknown_type(load)
