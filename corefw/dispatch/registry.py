"""The registry: all ops, the kernels that backends offer for them, and the runtimes of devices."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, lru_cache
from importlib import import_module
from typing import Any

from corefw.devices import DispatchKey, add_device_type, device
from corefw.dispatch.backend import API_VERSION, Backend, Kernel
from corefw.dispatch.op import Op
from corefw.dispatch.runtime import MetaRuntime, Runtime
from corefw.dtypes import dtype
from corefw.errors import BackendError, DeviceError, KernelNotFoundError


class Registry:
    """All ops, backends, runtimes and preferences of the process; there is one, `registry`."""

    def __init__(self):
        self.declared: dict[str, Op] = {}
        self.backends: dict[str, Backend] = {}
        self.dropped: dict[str, tuple[str, ...]] = {}  # backend -> ops it has kernels for that are not declared
        self.failures: dict[str, BaseException] = {}  # plugins that could not be registered, with the reason
        self.runtimes: dict[str, tuple[str, Runtime]] = {}  # device type -> (backend, runtime)
        self.kernels: dict[tuple[str, str], list[tuple[Backend, Kernel]]] = {}  # (op, device type) -> offers
        self.preferred: list[dict[str, tuple[str, ...]]] = []  # scopes of {"cpu" or "op@cpu": backend names}
        self.disabled: set[str] = set()
        self.fallback: str | None = None
        self.measuring = False  # whether the fastest kernel is chosen where the user prefers none
        self.own_methods: dict[tuple[Any, str], Any] = {}  # those in whose place is a backend's
        self.threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.filled: list[dict] = []  # the tables that hold entries
        self.decisions: dict[tuple[Op, DispatchKey], Any] = {}  # which kernel serves, whatever modes make of it
        self.epoch = 0  # counts how often entries were dropped
        self.modes: list[Any] = []  # innermost last; each may wrap what was resolved
        self.load: Callable[[str | None], None] = lambda device_type: None  # set by the plugin loader
        self.check: Callable[[str], None] = lambda device_type: None  # set by the reader of settings
        self.checked: set[str] = set()  # device types for which the settings were found right
        self.resolve: Callable[[Op, DispatchKey, bool], tuple]  # set by the resolver

    # -- changes; each drops what was resolved ----------------------------------------------------------------
    def forget(self) -> None:
        """Drop every decision and resolved entry, so that the next call resolves anew."""
        self.decisions.clear()
        self.fit_anew()

    def fit_anew(self) -> None:
        """Drop every resolved entry, but for which kernel it was."""
        self.epoch += 1
        filled, self.filled = self.filled, []
        for table in filled:
            table.clear()

    def add_backend(self, backend: Backend) -> None:
        """Register a backend; raises BackendError, and changes nothing, if it contradicts what is there."""
        if backend.name in self.backends:
            raise BackendError(
                f"backend '{backend.name}' is registered already (version {self.backends[backend.name].version})"
            )
        major, minor = backend.api
        if major != API_VERSION[0] or minor > API_VERSION[1]:
            raise BackendError(
                f"backend '{backend.name}' {backend.version} was written for plugin interface {major}.{minor}; this "
                "corefw "
                f"has {API_VERSION[0]}.{API_VERSION[1]} (the major number must be equal, the minor at most corefw's): "
                + ("upgrade corefw" if (major, minor) > API_VERSION else "upgrade the backend")
            )
        for kind in backend.runtimes:
            if kind in self.runtimes:
                raise BackendError(
                    f"device '{kind}' is owned by backend '{self.runtimes[kind][0]}'; '{backend.name}' cannot own it "
                    "too"
                )
        backend.kernels = {kind: list(kernels) for kind, kernels in backend.kernels.items()}
        self.dropped[backend.name] = self._drop_unknown(backend)
        offers = [] if backend.unusable else [(kind, kernel) for kind, ks in backend.kernels.items() for kernel in ks]
        self.backends[backend.name] = backend
        if backend.set_num_threads is not None:
            backend.set_num_threads(self.threads)
        for kind in backend.devices:
            add_device_type(kind)
        for kind, runtime in backend.runtimes.items():
            if not backend.unusable:
                self.runtimes[kind] = (backend.name, runtime)
        for kind, kernel in offers:
            listed = self.kernels.setdefault((kernel.op, kind), [])
            listed.append((backend, kernel))
            listed.sort(key=lambda offer: (-offer[0].priority, offer[0].name))
        if not backend.unusable:
            self._put_methods(backend)
        self.forget()

    def _put_methods(self, backend: Backend) -> None:
        """Put a backend's methods and functions in the place of the frontend's own, unless another one's are there."""
        for (place, name), make in backend.methods.items():
            owner = import_module(place) if isinstance(place, str) else place
            if (owner, name) not in self.own_methods:
                self.own_methods[owner, name] = own = vars(owner)[name]
                setattr(owner, name, make(own))

    def own(self, thing: Any) -> Any:
        """The frontend's own, whose signature can be read, of what may be a backend's method or function."""
        places = self.own_methods.items()
        return next((own for (owner, name), own in places if vars(owner)[name] is thing), thing)

    def _drop_unknown(self, backend: Backend) -> tuple[str, ...]:
        """Take from a backend the kernels of ops that are not declared here, such as a newer corefw's; their names."""
        unknown = {k.op for kernels in backend.kernels.values() for k in kernels} - self.declared.keys()
        backend.kernels = {kind: [k for k in ks if k.op not in unknown] for kind, ks in backend.kernels.items()}
        return tuple(sorted(unknown))

    def ties(self, name: str) -> dict[tuple[str, str], list[str]]:
        """The ops that a backend offers with the priority of another one, by device type and name of the other, apart
        from those for which the user prefers one of the two."""
        found: dict[tuple[str, str], list[str]] = {}
        backend = self.backends[name]
        for kind in [] if backend.unusable else backend.kernels:
            for kernel in backend.kernels[kind]:
                for other, offered in self.kernels[kernel.op, kind]:
                    if other is backend or other.priority != backend.priority or not offered.dtypes & kernel.dtypes:
                        continue
                    if not {name, other.name} & {*self.preference(kernel.op, kind)}:
                        ops = found.setdefault((kind, other.name), [])
                        ops += [] if kernel.op in ops else [kernel.op]
        return found

    def set_num_threads(self, number: int) -> None:
        """Tell the backends that have threads how many to use, now and when they are registered."""
        self.threads = number
        for backend in self.backends.values():
            if backend.set_num_threads is not None:
                backend.set_num_threads(number)

    def runtime(self, device_type: str) -> Runtime:
        """The runtime of a device type, loading the plugins that may serve it; DeviceError with reasons if none,
        SettingError if the user's settings for it name what is not there."""
        if device_type not in self.checked or device_type not in self.runtimes:
            self.load(device_type)
        if device_type not in self.runtimes:
            reasons = [
                f"{b.name}: {b.unusable}" for b in self.backends.values() if device_type in b.devices and b.unusable
            ] + [f"{name}: {error}" for name, error in self.failures.items()]
            raise DeviceError(
                f"device '{device_type}' is not available: "
                + ("; ".join(reasons) if reasons else "no installed backend serves it (see `corefw backends`)")
            ) from next(iter(self.failures.values()), None)
        if device_type not in self.checked:
            self.check(device_type)
            self.checked.add(device_type)
        return self.runtimes[device_type][1]

    # -- candidates ------------------------------------------------------------------------------------------
    def preference(self, op: str, device_type: str) -> tuple[str, ...]:
        """The backends asked for, best first: per op before per device, inner scopes before outer ones."""
        wanted: list[str] = []
        for key in (f"{op}@{device_type}", device_type):
            for scope in reversed(self.preferred):
                wanted += scope.get(key, ())
        return tuple(dict.fromkeys(wanted))

    def candidates(self, op: str, device_type: str, wanted: tuple[str, ...]) -> list[tuple[Backend, Kernel]]:
        """The kernels offered for `op` on a device type, in the order in which they are asked: `wanted` first."""
        offers = [offer for offer in self.kernels.get((op, device_type), ()) if offer[0].name not in self.disabled]
        return sorted(offers, key=lambda o: wanted.index(o[0].name) if o[0].name in wanted else len(wanted))


registry = Registry()


class Ops:
    """All declared functions by name, for bodies and gradients that need more than Tensor's methods:
    ``ops.cat(...)``. Each is there from its declaration on."""


ops: Any = Ops()


registry.runtimes["meta"] = ("corefw", MetaRuntime())


def dispatch_key_of(key_device: device, d: dtype) -> DispatchKey:
    """The dispatch key of (device, dtype); a device without an index is given the current one."""
    found = key_device._keys.get(d)
    if found is not None:
        return found
    runtime = registry.runtime(key_device.type)
    if key_device.index is None:
        current = runtime.current_device()
        if current is not None:
            return dispatch_key_of(device(key_device.type, current), d)
    elif runtime.current_device() is None:
        return dispatch_key_of(device(key_device.type), d)
    elif key_device.index >= runtime.device_count():
        raise DeviceError(
            f"device {key_device} does not exist: there are {runtime.device_count()} of type '{key_device.type}'"
        )
    if d.numpy is None:
        raise KernelNotFoundError(f"dtype {d!r} cannot be stored by any backend")
    return DispatchKey.intern(key_device, d, runtime)


@cache
def shape_rule(op: str) -> Callable[..., Any]:
    """The rule that gives the shape of an op's result from the shapes of its arrays and its other arguments, or raises
    what is wrong with them; what it gave last is kept, so all arguments must be hashable."""
    rule = registry.declared[op].shape
    assert rule is not None
    return lru_cache(maxsize=4096)(rule)
