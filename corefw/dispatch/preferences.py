"""What the user asks for in the environment: backends to ask first and a device to fall back to, read at import and
checked when a device is first used, since only then its backends are loaded."""

from __future__ import annotations

import os
from itertools import chain

from corefw.devices import device
from corefw.dispatch import plugins
from corefw.dispatch.backend import Backend
from corefw.dispatch.checking import checking
from corefw.dispatch.composition import named_ops
from corefw.dispatch.op import Op
from corefw.dispatch.registry import dispatch_key_of, registry
from corefw.dtypes import float32
from corefw.errors import SettingError, did_you_mean
from corefw.tracebacks import warn

_SETTINGS = ("BACKENDS", "CACHE", "CHECK", "OPS", "DISABLE", "FALLBACK", "FULL_TRACEBACK", "POISON")  # after COREFW_
_checking = checking()  # by COREFW_CHECK, for the whole program
_unreadable: list[str] = []  # what was wrong with the environment at import
_others: set[str] = set()  # variables that begin so, too: backends have some of their own


def configure(environment=os.environ) -> None:
    """Read the preferences from the environment: COREFW_BACKENDS, COREFW_OPS, COREFW_DISABLE, COREFW_FALLBACK,
    COREFW_CHECK.

    >>> configure({"COREFW_BACKENDS": "cpu=c,numpy", "COREFW_OPS": "convolution@cpu=numpy"})
    >>> registry.preferred[0]
    {'cpu': ('c', 'numpy'), 'convolution@cpu': ('numpy',)}
    >>> configure({})
    """
    wanted: dict[str, tuple[str, ...]] = {}
    for variable in ("COREFW_BACKENDS", "COREFW_OPS"):
        for item in filter(None, environment.get(variable, "").replace(" ", "").split(";")):
            if variable == "COREFW_OPS" and item == "auto":
                continue
            key, equals, names = item.partition("=")
            if not equals or not all(names.split(",")) or (variable == "COREFW_OPS") != ("@" in key):
                form = (
                    "device=backend,backend;..." if variable == "COREFW_BACKENDS" else "op@device=backend;... or auto"
                )
                raise SettingError(f"{variable}: cannot read {item!r}; the form is {form}")
            wanted[key] = tuple(names.split(","))
    if environment.get("COREFW_CHECK", "0") not in ("0", "1", ""):
        raise SettingError(f"COREFW_CHECK={environment['COREFW_CHECK']!r}: expected 1 to check all results, or 0")
    registry.modes = [mode for mode in registry.modes if mode is not _checking]
    if environment.get("COREFW_CHECK") == "1":
        registry.modes.insert(0, _checking)
    registry.preferred[:1] = [wanted]
    registry.measuring = "auto" in environment.get("COREFW_OPS", "").replace(" ", "").split(";")
    registry.disabled = set(filter(None, environment.get("COREFW_DISABLE", "").replace(" ", "").split(",")))
    registry.fallback = environment.get("COREFW_FALLBACK") or None
    registry.checked.clear()
    _others.clear()
    _others.update(v[len("COREFW_") :] for v in environment if v.startswith("COREFW_"))
    _others.difference_update(_SETTINGS)
    _unreadable.clear()
    registry.forget()


def usable_backend(name: str, asking: str = "") -> Backend:
    """The backend that the user asks for by name; SettingError, begun by who asks, if it is not there or not usable."""
    if name not in registry.backends:
        plugins.load(None)
    if name in registry.disabled:
        raise SettingError(f"{asking}backend '{name}' is disabled by COREFW_DISABLE")
    if failure := registry.failures.get(name):
        raise SettingError(f"{asking}backend '{name}' is broken: {failure}") from failure
    if name not in registry.backends:
        installed = sorted({*registry.backends} - registry.disabled)
        guess = did_you_mean(name, installed)
        raise SettingError(f"{asking}backend '{name}' is not installed{guess}; installed: {', '.join(installed)}")
    if registry.backends[name].unusable:
        raise SettingError(f"{asking}backend '{name}' cannot be used: {registry.backends[name].unusable}")
    return registry.backends[name]


def check(device_type: str) -> None:
    """Refuse preferences that name unknown ops or devices, or for this device backends that cannot be used."""
    if _unreadable:
        raise SettingError(_unreadable[0])
    wanted: dict[str, tuple[str, ...]] = {}
    for key, names in registry.preferred[0].items():
        op_name, at, kind = key.rpartition("@")
        variable = "COREFW_OPS" if at else "COREFW_BACKENDS"
        _check_device_type(variable, kind)
        op = _op(op_name) if at else None
        wanted[f"{op.name}@{kind}" if op else kind] = names
        if kind == device_type:
            backends = [usable_backend(name, f"{variable}: ") for name in names]
            for backend in backends:
                if kind not in backend.devices:
                    raise SettingError(
                        f"{variable}: backend '{backend.name}' serves {', '.join(backend.devices)}, not {kind}"
                    )
            if op is not None:
                _check_offered(op, kind, names)
    registry.preferred[0] = wanted
    _check_fallback(device_type)
    if not registry.checked:
        _warn_of_what_has_no_effect()


def _warn_of_what_has_no_effect() -> None:
    """Name what is likely to be misspelt; it may be meant for a backend, or for one that is not installed here."""
    settings = {name: backend.settings for name, backend in registry.backends.items()}
    known = {*_SETTINGS, *chain.from_iterable(settings.values())}
    for name in sorted(_others - known):
        guess = did_you_mean(name, sorted(known)).replace("'", "'COREFW_", 1)
        if guess and not any(name.startswith(f"{b.upper()}_") for b in plugins.names() if not settings.get(b)):
            warn(f"no setting is called COREFW_{name}{guess}")
    installed = plugins.names() if registry.disabled else set()
    for name in sorted(registry.disabled - installed):
        warn(f"COREFW_DISABLE: backend '{name}' is not installed{did_you_mean(name, installed)}")


def _check_device_type(variable: str, kind: str) -> None:
    try:
        found = device(kind)
    except RuntimeError as error:
        raise SettingError(f"{variable}: {error}") from None
    if found.index is not None:
        raise SettingError(f"{variable}: backends serve all devices of a type: name '{found.type}', not '{kind}'")


def _op(name: str) -> Op:
    if name not in registry.declared:
        raise SettingError(f"COREFW_OPS: no op is called '{name}'{did_you_mean(name, registry.declared)}")
    return registry.declared[name]


def _check_offered(op: Op, kind: str, names: tuple[str, ...]) -> None:
    """Refuse a preference for an op that none of the backends computes, and say which ops to name instead."""

    def offered(one: Op) -> bool:
        return any(backend.name in names for backend, _ in registry.kernels.get((one.name, kind), ()))

    if offered(op):
        return
    what = f"COREFW_OPS: {', '.join(names)} {'has' if len(names) == 1 else 'have'} no kernel for {op.name} on {kind}"
    if op.primitive or op.view:
        others = sorted({backend.name for backend, _ in registry.kernels.get((op.name, kind), ())})
        raise SettingError(f"{what}; backends with one: {', '.join(others) or 'none'}")
    inner = [one.name for one in named_ops(op) if offered(one)]
    advice = f'; name those: {", ".join(inner)} (COREFW_OPS="{inner[0]}@{kind}={names[0]}")' if inner else ""
    raise SettingError(f"{what}: it is a composition of other ops{advice}")


def _check_fallback(device_type: str) -> None:
    if registry.fallback is None:
        return
    try:
        fallback = device(registry.fallback)
        if fallback.type != device_type:
            dispatch_key_of(fallback, float32)
    except SettingError:
        raise
    except RuntimeError as error:
        raise SettingError(f"COREFW_FALLBACK={registry.fallback}: {error}") from error
    if not any(kind == fallback.type for _, kind in registry.kernels):
        raise SettingError(f"COREFW_FALLBACK={registry.fallback}: no backend computes on '{fallback.type}'")


registry.check = check
try:
    configure()
except SettingError as error:  # raised by `check`: corefw can be imported, and the command `corefw` say what is wrong
    _unreadable.append(str(error))
