"""The registry: ops, the kernels that backends offer for them, and the tables that say which kernel runs where."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from corefw import dtypes
from corefw.devices import Place, add_device_type, device
from corefw.dispatch.flags import unheard
from corefw.dispatch.runtime import MetaRuntime, Runtime
from corefw.dtypes import dtype
from corefw.errors import BackendError, DeviceError, KernelNotFoundError

API_VERSION = (1, 0)  # of the plugin interface: a plugin's major must be equal, its minor at most this


@dataclass(frozen=True)
class Kernel:
    """A function on raw arrays that computes one op.

    Attributes: ``function`` called with the op's arguments in declared order, tensors as raw arrays; ``dtypes`` the
    computed dtypes it takes; ``out`` whether it takes ``out=`` (an array to write to, possibly the first argument's);
    ``numbers`` the function to call where 0-d arrays of float32 stand beside arrays of half types, None if there is
    none.
    """

    op: str
    function: Callable
    dtypes: frozenset[dtype] = frozenset(dtypes.ALL)
    out: bool = False
    numbers: Callable | None = None


@dataclass
class Backend:
    """What a plugin gives: runtimes and kernels for some device types.

    Attributes: ``name``; ``version``; ``devices`` the device types served; ``kernels`` per device type;
    ``runtimes`` per device type, for devices that this backend owns; ``priority`` the higher one is asked first;
    ``compute_dtype`` for dtypes without kernels the wider one to compute in; ``detail`` what else tells which kernels
    run here, shown wherever the backend is, such as the set of instructions they use; ``unusable`` the reason why the
    backend cannot run here, or None; ``set_num_threads`` is called with the number of threads to use, first when the
    backend is registered; ``api`` the interface version it was written for.
    """

    name: str
    version: str
    devices: tuple[str, ...]
    kernels: dict[str, Iterable[Kernel]] = field(default_factory=dict)
    runtimes: dict[str, Runtime] = field(default_factory=dict)
    priority: int = 0
    compute_dtype: dict[dtype, dtype] = field(default_factory=dict)
    detail: str = ""
    unusable: str | None = None
    set_num_threads: Callable[[int], None] | None = None
    api: tuple[int, int] = API_VERSION


@dataclass(frozen=True)
class Parameter:
    """One parameter of an op: its name, kind and default (``REQUIRED`` if there is none)."""

    name: str
    # "tensor", "optional", "index", "tensors", "indices", "place", "dim", "dims", "sizes", "inplace", "static"
    kind: str
    default: Any
    annotation: str
    keyword_only: bool = False


REQUIRED = object()


class Op:
    """A declared op; `function` is what users call. Made by the decorators of `corefw.dispatch.declare`."""

    def __init__(self, name, parameters, body, rule, shape, **options):
        self.name: str = name
        self.parameters: tuple[Parameter, ...] = parameters
        self.body: Callable = body
        self.family: str = body.__module__.rpartition(".")[2]  # "pointwise", ...: the file that declares it
        self.rule: Any = rule  # a DtypeRule, None for a plain function
        self.shape: Callable | None = shape
        self.primitive: bool = options.get("primitive", False)
        self.view: bool = options.get("view", False)
        self.outputs: tuple[str, ...] = options.get("outputs", ())
        self.rewrites: tuple[str, ...] = options.get("rewrites", ())
        self.inplace: bool = options.get("inplace", False)
        self.takes_out: bool = options.get("out", False)
        self.method: bool | str = options.get("method", True)
        self.aliases: tuple[str, ...] = options.get("aliases", ())
        self.grad_name: str = options.get("grad_name", "")
        self.gradients: dict[tuple[str, ...], Callable] = {}
        self.saved_for: dict[tuple[str, ...], tuple[str, ...]] = {}  # the inputs whose gradients need what is saved
        self.zero_gradients: tuple[str, ...] = ()
        self.function: Callable = body
        self.inplace_function: Any = None  # None if the op has no in-place form
        self.result_type: Any = tuple  # of several outputs: a named tuple
        self.node_class: Any = None  # its Node subclass, made when first needed
        self.table: Table = Table(self)
        self.inplace_table: InplaceTable = self.table.inplace
        self.number_table: Table = Table(self, numbers=True)

    @property
    def kernel_parameters(self) -> list[Parameter]:
        """The parameters that a kernel is called with, in order."""
        return [p for p in self.parameters if p.name not in self.rewrites and p.kind not in ("place", "inplace")]

    @property
    def tensor_parameters(self) -> list[Parameter]:
        """The parameters that hold one tensor each."""
        return [p for p in self.parameters if p.kind in ("tensor", "optional", "index")]

    def __repr__(self) -> str:
        return f"<op {self.name}>"


# -- tables -----------------------------------------------------------------------------------------------------------
class Table(dict):
    """{place: (kernel, result place(s), array type, takes out=)} of one op, resolved on first use of a place.

    The kernel of a composite without one is None; then the second item is the body to run. With `numbers` the kernels
    take 0-d arrays of float32 beside arrays of half types.
    """

    __slots__ = ("inplace", "numbers", "op")

    def __init__(self, op: Op, numbers: bool = False):
        self.op = op
        self.numbers = numbers
        self.inplace = InplaceTable(self)

    def __missing__(self, place: Place):
        entry = self[place] = registry.resolve(self.op, place, self.numbers)
        registry.filled.append(self)
        return entry

    def clear(self) -> None:
        """Drop every entry."""
        super().clear()
        self.inplace.clear()


class InplaceTable(dict):
    """{place: function(target, *arguments)} of one op: runs the kernel and leaves the result in `target`."""

    __slots__ = ("table",)

    def __init__(self, table: Table):
        self.table = table

    def __missing__(self, place: Place):
        kernel, result, array_type, writes = self.table[place]
        copy = place.runtime.copy
        dtypes.check_castable(result.dtype, place.dtype)
        if writes and result is place:

            def into(target, *arguments):
                kernel(*arguments, out=target)
        else:
            wrap_array = place.runtime.wrap

            def into(target, *arguments):
                value = kernel(*arguments)
                if value.__class__ is not array_type:
                    value = wrap_array(value)
                if value.shape != target.shape:
                    raise ValueError(f"result of shape {list(value.shape)} for a target of shape {list(target.shape)}")
                copy(target, value)

        self[place] = into = unheard(into)
        return into


class Registry:
    """All ops, backends, runtimes and preferences of the process; there is one, `registry`."""

    def __init__(self):
        self.ops: dict[str, Op] = {}
        self.backends: dict[str, Backend] = {}
        self.failures: dict[str, BaseException] = {}  # plugins that could not be registered, with the reason
        self.runtimes: dict[str, tuple[str, Runtime]] = {}  # device type -> (backend, runtime)
        self.kernels: dict[tuple[str, str], list[tuple[Backend, Kernel]]] = {}  # (op, device type) -> offers
        self.preferred: list[dict[str, tuple[str, ...]]] = []  # scopes of {"cpu" or "op@cpu": backend names}
        self.disabled: set[str] = set()
        self.fallback: str | None = None
        self.threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.deterministic = False  # whether results may not depend on the order in which a device works
        self.allow_tf32 = False  # whether matrix products of float32 may round to TensorFloat-32
        # PyTorch's switches for the vendor's library of layers (`backends.cudnn`)
        self.library = {"allow_tf32": True, "benchmark": False, "deterministic": False, "enabled": True}
        self.filled: list[Table] = []  # the tables that hold entries
        self.modes: list[Any] = []  # innermost last; each may wrap what was resolved
        self.load: Callable[[str], None] = lambda device_type: None  # set by the plugin loader
        self.check: Callable[[str], None] = lambda device_type: None  # set by the reader of settings
        self.checked: set[str] = set()  # device types for which the settings were found right
        self.resolve: Callable[[Op, Place, bool], tuple]  # set by the resolver

    # -- changes; each drops what was resolved ----------------------------------------------------------------
    def forget(self) -> None:
        """Drop every resolved entry, so that the next call resolves anew."""
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
        offers = [] if backend.unusable else [(kind, kernel) for kind, ks in backend.kernels.items() for kernel in ks]
        for kind, kernel in offers:
            for other, offered in self.kernels.get((kernel.op, kind), ()):
                if other.priority == backend.priority and offered.dtypes & kernel.dtypes:
                    first, second = sorted((other.name, backend.name))
                    raise BackendError(
                        f"backends '{first}' and '{second}' both offer {kernel.op} on {kind} with priority "
                        f"{backend.priority}; one of them must declare another priority"
                    )
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
            listed.sort(key=lambda offer: -offer[0].priority)
        self.forget()

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

    def candidates(self, op: str, device_type: str) -> list[tuple[Backend, Kernel]]:
        """The kernels offered for `op` on a device type, in the order in which they are asked."""
        wanted = self.preference(op, device_type)
        offers = [offer for offer in self.kernels.get((op, device_type), ()) if offer[0].name not in self.disabled]
        return sorted(offers, key=lambda o: wanted.index(o[0].name) if o[0].name in wanted else len(wanted))


registry = Registry()
registry.runtimes["meta"] = ("corefw", MetaRuntime())


def place_of(place_device: device, d: dtype) -> Place:
    """The place of (device, dtype); a device without an index is given the current one."""
    found = Place._interned.get((place_device, d))
    if found is not None:
        return found
    runtime = registry.runtime(place_device.type)
    if place_device.index is None:
        current = runtime.current_device()
        if current is not None:
            return place_of(device(place_device.type, current), d)
    elif runtime.current_device() is None:
        return place_of(device(place_device.type), d)
    elif place_device.index >= runtime.device_count():
        raise DeviceError(
            f"device {place_device} does not exist: there are {runtime.device_count()} of type '{place_device.type}'"
        )
    if d.numpy is None:
        raise KernelNotFoundError(f"dtype {d!r} cannot be stored by any backend")
    return Place.intern(place_device, d, runtime)
