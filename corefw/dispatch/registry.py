"""The registry: ops, the kernels that backends offer for them, and the tables that say which kernel runs where."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from corefw import dtypes
from corefw.devices import Place, add_device_type, device
from corefw.dispatch.record import no_recording
from corefw.dispatch.runtime import MetaArray, MetaRuntime, Runtime
from corefw.dtypes import dtype
from corefw.errors import BackendError, DeviceError, DtypeError, KernelNotFoundError
from corefw.tensor import wrap

API_VERSION = (1, 0)  # of the plugin interface: a plugin's major must be equal, its minor at most this


@dataclass(frozen=True)
class Kernel:
    """A function on raw arrays that computes one op.

    Attributes: ``function`` called with the op's arguments in declared order, tensors as raw arrays; ``dtypes`` the
    computed dtypes it takes; ``out`` whether it takes ``out=`` (an array to write to, possibly the first argument's).
    """

    op: str
    function: Callable
    dtypes: frozenset[dtype] = frozenset(dtypes.ALL)
    out: bool = False


@dataclass
class Backend:
    """What a plugin gives: runtimes and kernels for some device types.

    Attributes: ``name``; ``version``; ``devices`` the device types served; ``kernels`` per device type;
    ``runtimes`` per device type, for devices that this backend owns; ``priority`` the higher one is asked first;
    ``compute_dtype`` for dtypes without kernels the wider one to compute in; ``unusable`` the reason why the backend
    cannot run here, or None; ``set_num_threads`` is called with `corefw.set_num_threads`'s argument; ``api`` the
    interface version it was written for.
    """

    name: str
    version: str
    devices: tuple[str, ...]
    kernels: dict[str, Iterable[Kernel]] = field(default_factory=dict)
    runtimes: dict[str, Runtime] = field(default_factory=dict)
    priority: int = 0
    compute_dtype: dict[dtype, dtype] = field(default_factory=dict)
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
        self.zero_gradients: tuple[str, ...] = ()
        self.function: Callable = body
        self.inplace_function: Any = None  # None if the op has no in-place form
        self.result_type: Any = tuple  # of several outputs: a named tuple
        self.node_class: Any = None  # its Node subclass, made when first needed
        self.table: Table = Table(self)
        self.inplace_table: InplaceTable = InplaceTable(self)

    @property
    def family(self) -> str:
        """The file that declares the op: "pointwise", "reduction", ..."""
        return self.body.__module__.rpartition(".")[2]

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

    The kernel of a composite without one is None; then the second item is the body to run.
    """

    __slots__ = ("op",)

    def __init__(self, op: Op):
        self.op = op

    def __missing__(self, place: Place):
        entry = self[place] = resolve(self.op, place)
        return entry


class InplaceTable(dict):
    """{place: function(target, *arguments)} of one op: runs the kernel and leaves the result in `target`."""

    __slots__ = ("op",)

    def __init__(self, op: Op):
        self.op = op

    def __missing__(self, place: Place):
        kernel, result, array_type, writes = self.op.table[place]
        copy = place.runtime.copy
        if result is not place and not dtypes.can_cast(result.dtype, place.dtype):
            raise DtypeError(
                f"result type {result.dtype.title} can't be cast to the desired output type {place.dtype.title}"
            )
        if writes and result is place:

            def into(target, *arguments):
                kernel(*arguments, out=target)
        else:
            wrap_array = place.runtime.wrap

            def into(target, *arguments):
                value = kernel(*arguments)
                if value.__class__ is not array_type:
                    value = wrap_array(value)
                if len(value.shape) > len(target.shape) or value.shape != target.shape:
                    raise ValueError(f"result of shape {list(value.shape)} for a target of shape {list(target.shape)}")
                copy(target, value)

        self[place] = into
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
        self.modes: list[Any] = []  # innermost last; each may wrap what was resolved
        self.load: Callable[[str], None] = lambda device_type: None  # set by the plugin loader

    # -- changes; each drops what was resolved ----------------------------------------------------------------
    def forget(self) -> None:
        """Drop every resolved entry, so that the next call resolves anew."""
        for op in self.ops.values():
            op.table.clear()
            op.inplace_table.clear()

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
                    raise BackendError(
                        f"backends '{other.name}' and '{backend.name}' both offer {kernel.op} on {kind} with priority "
                        f"{backend.priority}; one of them must declare another priority"
                    )
        self.backends[backend.name] = backend
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

    def runtime(self, device_type: str) -> Runtime:
        """The runtime of a device type, loading the plugins that may serve it; DeviceError with reasons if none."""
        if device_type not in self.runtimes:
            self.load(device_type)
        if device_type not in self.runtimes:
            reasons = [
                f"{b.name}: {b.unusable}" for b in self.backends.values() if device_type in b.devices and b.unusable
            ] + [f"{name}: {error}" for name, error in self.failures.items()]
            raise DeviceError(
                f"device '{device_type}' is not available: "
                + ("; ".join(reasons) if reasons else "no installed backend serves it (see `corefw backends`)")
            ) from next(iter(self.failures.values()), None)
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


# -- resolution -------------------------------------------------------------------------------------------------------
@dataclass
class Decision:
    """Which kernel serves (op, place), and why: every candidate with the reason for its rank."""

    op: Op
    place: Place
    compute: dtype
    backend: Backend | None = None
    kernel: Kernel | None = None
    wide: dtype | None = None  # computed in this dtype instead of `compute`
    how: str = ""
    trail: list[str] = field(default_factory=list)


def decide(op: Op, place: Place) -> Decision:
    """Follow the resolution order for an op whose tensors lie at `place`; nothing runs.

    The order: a kernel for exactly this dtype, by the user's preference, then by priority; a kernel for the wider dtype
    that a backend names; the composite's body.
    """
    assert op.rule is not None
    check_accepted(op, place.dtype)
    compute = op.rule.compute(place.dtype)
    decision = Decision(op, place, compute)
    offers = registry.candidates(op.name, place.device.type)
    wanted = registry.preference(op.name, place.device.type)
    for backend, kernel in offers:
        asked = "asked for" if backend.name in wanted else f"priority {backend.priority}"
        if decision.kernel is None and compute in kernel.dtypes:
            decision.backend, decision.kernel, decision.how = (
                backend,
                kernel,
                f"kernel of backend '{backend.name}' ({asked})",
            )
            decision.trail.append(f"{backend.name} ({asked}): chosen")
        elif compute in kernel.dtypes:
            decision.trail.append(f"{backend.name} ({asked}): outranked")
        else:
            decision.trail.append(f"{backend.name} ({asked}): no kernel for {compute.name}")
    if decision.kernel is None:
        for backend, kernel in offers:
            wide = backend.compute_dtype.get(compute)
            if wide is not None and wide in kernel.dtypes:
                decision.backend, decision.kernel, decision.wide = backend, kernel, wide
                decision.how = f"kernel of backend '{backend.name}' computing in {wide.name}"
                decision.trail.append(f"{backend.name}: chosen, through its {wide.name} kernel")
                break
    if decision.kernel is None and op.view:
        decision.how = "geometry"
        decision.trail.append("strides of the view: chosen")
    elif decision.kernel is None and place.device.type == "meta" and op.primitive:
        decision.how = "shape rule"
    elif decision.kernel is None and not op.primitive:
        decision.how = "body of the composite"
        decision.trail.append("body of the composite: chosen")
    elif decision.kernel is None:
        offers_elsewhere = sorted({kind for (name, kind) in registry.kernels if name == op.name})
        raise KernelNotFoundError(
            f"{op.name}: no kernel for {place} (computed in {compute.name}); candidates: "
            f"{'; '.join(decision.trail) or 'none'}; "
            f"disabled: {', '.join(sorted(registry.disabled)) or 'none'}; devices with kernels: "
            f"{', '.join(offers_elsewhere) or 'none'}. "
            "Install a backend that offers it, convert the tensors, or allow a slow copy with COREFW_FALLBACK=cpu."
        )
    return decision


def check_accepted(op: Op, d: dtype) -> None:
    """Refuse a dtype that the op's rule does not take."""
    assert op.rule is not None
    if not op.rule.accepts(d):
        names = ", ".join(accepted.name for accepted in dtypes.ALL if op.rule.accepts(accepted))
        raise KernelNotFoundError(f"{op.name} is not supported for {d.name} inputs (it takes {names})")


def resolve(op: Op, place: Place):
    """The table entry for `place`: (kernel, result place or places, array type, whether it takes ``out=``)."""
    writes = False
    try:
        decision = decide(op, place)
    except KernelNotFoundError:
        if registry.fallback in (None, place.device.type) or not op.rule.accepts(place.dtype):
            raise
        kernel, who = fallback_kernel(op, place), f"fallback to {registry.fallback}"
    else:
        if decision.kernel is not None and decision.backend is not None:
            kernel, who = decision.kernel.function, decision.backend.name
            if decision.wide is not None:
                kernel = _computing_in(decision.wide, op, place, kernel)
            elif decision.compute is not place.dtype:
                kernel = _converting(decision.compute, op, place, kernel)
            else:
                writes = decision.kernel.out
        elif decision.how == "shape rule":
            kernel, who = _shape_kernel(op, place), "meta"
        elif decision.how == "geometry":
            kernel, who = _geometry_kernel(op, place), "geometry"
        elif op.gradients:
            kernel, who = _body_kernel(op, place), "composite"
            wide = next(
                (b.compute_dtype[place.dtype] for b in registry.backends.values() if place.dtype in b.compute_dtype),
                None,
            )
            if wide is not None:  # what one op computes is rounded once, not after each step of the body
                kernel = _computing_in(wide, op, place, kernel)
        else:
            body = op.body
            for mode in registry.modes:
                body = mode.wrap(op, place, "composite", body)
            return None, body, None, False
    for mode in registry.modes:
        kernel = mode.wrap(op, place, who, kernel)
    results = tuple(place.with_dtype(result(place.dtype)) for result in op.rule.results)
    return kernel, results if op.outputs else results[0], place.runtime.array_type, writes


def _array_positions(op: Op, kinds=("tensor", "optional")) -> list[int]:
    return [i for i, p in enumerate(op.kernel_parameters) if p.kind in kinds]


def _converting(compute: dtype, op: Op, place: Place, kernel: Callable) -> Callable:
    """`kernel` for operands of another dtype than the one it computes in: they are cast first."""
    positions, cast = _array_positions(op), place.runtime.cast
    several = [i for i, p in enumerate(op.kernel_parameters) if p.kind == "tensors"]

    def converted(*arguments):
        changed = list(arguments)
        for i in positions:
            if changed[i] is not None:
                changed[i] = cast(changed[i], compute)
        for i in several:
            changed[i] = [cast(array, compute) for array in changed[i]]
        return kernel(*changed)

    return converted


def _computing_in(wide: dtype, op: Op, place: Place, kernel: Callable) -> Callable:
    """`kernel` of a wider dtype for a narrower one: operands are widened, floating results narrowed back."""
    widened, cast, wrap_array = _converting(wide, op, place, kernel), place.runtime.cast, place.runtime.wrap
    targets = [result(place.dtype) for result in op.rule.results]
    array_type = place.runtime.array_type

    def narrow(value, target):
        if value.__class__ is not array_type:
            value = wrap_array(value)
        return value if value.dtype == target.numpy else cast(value, target)

    if op.outputs:
        return lambda *arguments: tuple(map(narrow, widened(*arguments), targets))
    if op.view:
        return kernel
    target = targets[0]
    return lambda *arguments: narrow(widened(*arguments), target)


def _shape_kernel(op: Op, place: Place) -> Callable:
    """The kernel of the meta device: the op's shape rule."""
    results = [result(place.dtype).numpy for result in op.rule.results]

    def kernel(*arguments, out=None):
        shape = shape_of(op, arguments)
        if op.outputs:
            return tuple(map(MetaArray, shape, results))
        return MetaArray(shape, results[0])

    return kernel


def _geometry_kernel(op: Op, place: Place) -> Callable:
    """The kernel of a view op on any device: the declaration's arithmetic on strides."""
    runtime, geometry = place.runtime, op.body
    assert op.rule is not None
    seen_as = op.rule.results[0](place.dtype)

    def reinterpreted(array, *statics):
        itemsize = array.dtype.itemsize
        strides = tuple(s // itemsize for s in array.strides)
        result = geometry((tuple(array.shape), strides, runtime.storage_offset(array)), *statics)
        return runtime.as_strided(array, *result, seen_as)

    if seen_as is not place.dtype:
        return reinterpreted

    def kernel(array, *statics):
        itemsize = array.dtype.itemsize
        strides = tuple(s // itemsize for s in array.strides)
        result = geometry((tuple(array.shape), strides, runtime.storage_offset(array)), *statics)
        return [runtime.as_strided(array, *g) for g in result] if op.outputs else runtime.as_strided(array, *result)

    return kernel


def shape_of(op: Op, arguments) -> Any:
    """What the op's shape rule says of kernel arguments: arrays give their shapes, everything else passes as it is."""
    kinds = [p.kind for p in op.kernel_parameters]
    if op.shape is None:
        raise KernelNotFoundError(f"{op.name}: the result's shape depends on the data, so there is no meta kernel")
    return op.shape(
        *(
            [array.shape for array in value]
            if kind == "tensors"
            else value.shape
            if kind in ("tensor", "optional", "index") and value is not None
            else value
            for kind, value in zip(kinds, arguments, strict=False)
        )
    )


def _body_kernel(op: Op, place: Place) -> Callable:
    """A composite's body as a kernel on arrays, for composites that have a gradient of their own."""
    kinds = [p.kind for p in op.kernel_parameters]
    names = [p.name for p in op.kernel_parameters]
    device_ = place.device
    body = op.body

    def tensor(array):
        return wrap(array, Place.intern(device_, dtypes.of_numpy(array.dtype), place.runtime))

    def kernel(*arguments):
        values = [
            value
            if value is None
            else tensor(value)
            if kind in ("tensor", "optional", "index")
            else [tensor(array) for array in value]
            if kind == "tensors"
            else value
            for kind, value in zip(kinds, arguments, strict=False)
        ]
        with no_recording():
            result = body(**dict(zip(names, values)))
        return tuple(t.array for t in result) if op.outputs else result.array

    return kernel


def fallback_kernel(op: Op, place: Place) -> Callable:
    """A kernel that copies to the fallback device, computes there and copies back; only where the user allowed it."""
    assert registry.fallback is not None
    other_device = device(registry.fallback)
    other = place_of(other_device, place.dtype)
    kernel, _, array_type, _ = op.table[other]
    if kernel is None:
        raise KernelNotFoundError(f"{op.name}: neither {place} nor the fallback {other} has a kernel")
    kinds = [p.kind for p in op.kernel_parameters]
    runtime, index = place.runtime, place.device.index

    def there(value):
        return None if value is None else other.runtime.upload(runtime.download(value), other.device.index)

    def back(value):
        if value.__class__ is not array_type:
            value = other.runtime.wrap(value)
        return runtime.upload(other.runtime.download(value), index)

    def copied(*arguments):
        values = [
            there(value)
            if kind in ("tensor", "optional", "index")
            else [there(v) for v in value]
            if kind in ("tensors", "indices")
            else value
            for kind, value in zip(kinds, arguments, strict=False)
        ]
        result = kernel(*values)
        return tuple(map(back, result)) if op.outputs else back(result)

    return copied
