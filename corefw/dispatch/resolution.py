"""Resolution: which kernel serves an op at a dispatch key, and how it is fitted to what the dispatch key holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from corefw import dtypes
from corefw.devices import DispatchKey, device
from corefw.dispatch.backend import Backend, Kernel
from corefw.dispatch.batching import calls as batching
from corefw.dispatch.batching.arrays import BatchedDevice, LevelDevice
from corefw.dispatch.flags import unheard
from corefw.dispatch.measured import Rival, choosing, sized_by
from corefw.dispatch.op import Op
from corefw.dispatch.registry import dispatch_key_of, registry
from corefw.dispatch.rules import computed
from corefw.dispatch.runtime import MetaArray, Runtime
from corefw.dispatch.settings import settings
from corefw.dispatch.sparse.keys import LayoutKey
from corefw.dtypes import dtype
from corefw.errors import KernelNotFoundError
from corefw.graph.grad_mode import no_recording
from corefw.tensor import wrap
from corefw.tracebacks import warn


@dataclass
class Decision:
    """Which kernel serves (op, dispatch key), and why: every candidate with the reason for its rank."""

    op: Op
    dispatch_key: DispatchKey
    compute: dtype
    backend: Backend | None = None
    kernel: Kernel | None = None
    wide: dtype | None = None  # computed in this dtype instead of `compute`
    rivals: list[tuple[Backend, Kernel]] = field(default_factory=list)  # of which the fastest is to be chosen
    how: str = ""
    trail: list[str] = field(default_factory=list)


def decide(op: Op, dispatch_key: DispatchKey, wanted: tuple[str, ...] | None = None) -> Decision:
    """Follow the resolution order for an op whose tensors lie at `dispatch_key`; nothing runs. `wanted` are the
    backends to ask first, by default those that the user prefers.

    The order: a kernel for exactly this dtype, by the user's preference, then by priority; a kernel for the wider dtype
    that a backend names; the composite's body, which comes first where the backend that owns the device is asked for
    and no backend asked for has a kernel, so that it computes alone what it is to be compared in.
    """
    assert op.rule is not None
    check_accepted(op, dispatch_key.dtype)
    compute = op.rule.compute(dispatch_key.dtype)
    decision = Decision(op, dispatch_key, compute)
    if wanted is None:
        wanted = registry.preference(op.name, dispatch_key.device.type)
    offers = registry.candidates(op.name, dispatch_key.device.type, wanted)
    if settings.deterministic:
        varying = [offer for offer in offers if not offer[1].deterministic]
        offers = [offer for offer in offers if offer[1].deterministic]
        decision.trail += [f"{name}: its kernel is not deterministic" for name in {b.name: b for b, _ in varying}]
        if settings.deterministic_warn_only and op.primitive and not any(_computes(*o, compute) for o in offers):
            offers += varying
    fitting = [(backend, kernel) for backend, kernel in offers if compute in kernel.dtypes]
    able = {backend.name for backend, _ in fitting}
    composed = _composed_for(op, dispatch_key, compute, offers, wanted)
    if composed:
        fitting = []
    if fitting:
        decision.backend, decision.kernel = fitting[0]
        decision.how = f"kernel of backend '{decision.backend.name}' {_standing(decision.backend, wanted)}"
        decision.rivals = _rivals(op, dispatch_key, fitting, wanted)
    if decision.rivals:
        names = ", ".join(backend.name for backend, _ in decision.rivals)
        decision.how = f"the fastest of {names}, measured for each size of operands"
    for backend in {backend.name: backend for backend, _ in offers}.values():
        reason = f"no kernel for {compute.name}" if backend.name not in able else "outranked"
        reason = "chosen" if backend is decision.backend else reason
        reason = "measured" if decision.rivals and backend.name in able else reason
        decision.trail.append(f"{backend.name} {_standing(backend, wanted)}: {reason}")
    offering = {backend.name for backend, _ in offers}
    decision.trail += [f"{name} (asked for): no kernel for {op.name}" for name in wanted if name not in offering]
    if decision.kernel is None and not composed:
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
    elif decision.kernel is None and dispatch_key.device.type == "meta" and op.primitive:
        decision.how = "shape rule"
    elif decision.kernel is None and not op.primitive:
        decision.how = "body of the composite"
        decision.trail.append("body of the composite: chosen")
    elif decision.kernel is None:
        offers_elsewhere = sorted({kind for (name, kind) in registry.kernels if name == op.name})
        raise KernelNotFoundError(
            f"{op.name}: no kernel for {dispatch_key} (computed in {compute.name}); candidates: "
            f"{'; '.join(decision.trail) or 'none'}; disabled: {', '.join(sorted(registry.disabled)) or 'none'}; "
            f"devices with kernels: {', '.join(offers_elsewhere) or 'none'}. Install a backend that offers it, convert "
            "the tensors, or allow a slow copy with COREFW_FALLBACK=cpu."
        )
    return decision


def _composed_for(op: Op, dispatch_key: DispatchKey, compute: dtype, offers: list, wanted: tuple[str, ...]) -> bool:
    """Whether the device's owner is to compute a composite by its own kernels for what is inside."""
    if op.primitive or op.view or registry.runtimes[dispatch_key.device.type][0] not in wanted:
        return False
    return not any(backend.name in wanted and _computes(backend, kernel, compute) for backend, kernel in offers)


def _rivals(op: Op, dispatch_key: DispatchKey, fitting: list, wanted: tuple[str, ...]) -> list[tuple[Backend, Kernel]]:
    """The first kernels of several backends, where the fastest is wanted and none of them was asked for."""
    first = {backend.name: (backend, kernel) for backend, kernel in reversed(fitting)}
    asked = not registry.measuring or not first.keys().isdisjoint(wanted)
    if asked or len(first) < 2 or op.view or not sized_by(op):
        return []
    return [*reversed(first.values())]


def _standing(backend: Backend, wanted: tuple[str, ...]) -> str:
    """Which kernels a backend has, and why it is asked before or after others."""
    reason = "asked for" if backend.name in wanted else f"priority {backend.priority}"
    return f"({backend.detail}, {reason})" if backend.detail else f"({reason})"


def fallback_key(op: Op, dispatch_key: DispatchKey) -> DispatchKey | None:
    """Where an op without a kernel for `dispatch_key` may be computed instead, if the user allowed it."""
    if registry.fallback is None or op.rule is None or not op.rule.accepts(dispatch_key.dtype):
        return None
    other = device(registry.fallback)
    return None if other.type == dispatch_key.device.type else dispatch_key_of(other, dispatch_key.dtype)


def check_accepted(op: Op, d: dtype) -> None:
    """Refuse a dtype that the op's rule does not take."""
    assert op.rule is not None
    if not op.rule.accepts(d):
        names = ", ".join(accepted.name for accepted in dtypes.ALL if op.rule.accepts(accepted))
        raise KernelNotFoundError(f"{op.name} is not supported for {d.name} inputs (it takes {names})")


def resolve(op: Op, dispatch_key: DispatchKey, numbers: bool = False):
    """The table entry for `dispatch_key`: (kernel, result dispatch key or dispatch keys, array type, whether it takes
    ``out=``). With `numbers` the kernel takes 0-d arrays of float32 beside arrays of half types."""
    if dispatch_key.__class__ is LayoutKey:
        return dispatch_key.kind.entry(op)
    if dispatch_key.device.__class__ is BatchedDevice:
        return batching.entry(op, dispatch_key, _results, _geometry_kernel, body_kernel)
    if isinstance(dispatch_key.device, LevelDevice):
        return dispatch_key.device.entry(op, dispatch_key, _results, _geometry_kernel)
    try:
        decision = registry.decisions.get((op, dispatch_key)) or decide(op, dispatch_key)
        registry.decisions[op, dispatch_key] = decision
    except KernelNotFoundError:
        other = fallback_key(op, dispatch_key)
        if other is None:
            raise
        kernel, who, writes = fallback_kernel(op, dispatch_key, other), f"fallback to {registry.fallback}", False
    else:
        if decision.rivals:
            fitted = [(backend, *_fitted(decision, kernel, numbers)) for backend, kernel in decision.rivals]
            writes = all(w for _, _, w in fitted)
            rivals = [Rival(b.name, k, _in_modes(op, dispatch_key, b.name, k)) for b, k, _ in fitted]
            return choosing(op, dispatch_key, rivals, numbers), *_results(op, dispatch_key), writes
        kernel, who, writes = function_of(decision, numbers)
    kernel = _in_modes(op, dispatch_key, who, kernel)
    if who == "composite" and not op.gradients:
        return None, kernel, None, False
    return kernel, *_results(op, dispatch_key), writes


def function_of(decision: Decision, numbers: bool = False) -> tuple[Callable, str, bool]:
    """What a decision means: the function, who offers it (see `Mode.wrap`), and whether it takes ``out=``. Of a
    composite without gradients of its own it is the body, a function of tensors."""
    op, dispatch_key = decision.op, decision.dispatch_key
    if decision.kernel is not None and decision.backend is not None:
        kernel, writes = _fitted(decision, decision.kernel, numbers)
        return kernel, decision.backend.name, writes
    if decision.how == "shape rule":
        return _shape_kernel(op, dispatch_key), "meta", False
    if decision.how == "geometry":
        return _geometry_kernel(op, dispatch_key), "geometry", False
    if not op.gradients:
        return op.body, "composite", False
    kernel = body_kernel(op, dispatch_key)
    if op.rule is not None and op.rule.moves:
        return kernel, "composite", False
    compute_dtypes = (backend.compute_dtype for backend in registry.backends.values())
    wide = next((c[dispatch_key.dtype] for c in compute_dtypes if dispatch_key.dtype in c), None)
    if wide is not None:  # what one op computes is rounded once, not after each step of the body
        kernel = _computing_in(wide, op, dispatch_key, kernel)
    return kernel, "composite", False


def _fitted(decision: Decision, kernel: Kernel, numbers: bool) -> tuple[Callable, bool]:
    """A backend's kernel as a function for the arrays of the decision's dispatch key, and whether it takes ``out=``."""
    op, dispatch_key, function = decision.op, decision.dispatch_key, kernel.function
    if settings.deterministic and not kernel.deterministic:
        function = _warning(op, function)
    if numbers and decision.wide is None:
        function = kernel.numbers or _widening(op, dispatch_key)
    if kernel.check_shapes and op.shape is not None:
        function = _checking_shapes(op, function)
    guarded = dispatch_key.runtime.guarded(function, dispatch_key.device.index)
    if decision.wide is not None:
        return _computing_in(decision.wide, op, dispatch_key, guarded), False
    if decision.compute is not dispatch_key.dtype:
        return _converting(decision.compute, op, dispatch_key, guarded), False
    return guarded, kernel.out and (not numbers or kernel.numbers is not None)


def _computes(backend: Backend, kernel: Kernel, compute: dtype) -> bool:
    """Whether a kernel serves a dtype, or the wider one that its backend names."""
    return compute in kernel.dtypes or backend.compute_dtype.get(compute) in kernel.dtypes


def _warning(op: Op, kernel: Callable) -> Callable:
    """A kernel that is not deterministic, and says so."""

    def warned(*arguments, **options):
        warn(
            f"{op.name} does not have a deterministic implementation, but you set "
            "'use_deterministic_algorithms(True, warn_only=True)'"
        )
        return kernel(*arguments, **options)

    return warned


def _in_modes(op: Op, dispatch_key: DispatchKey, who: str, function: Callable) -> Callable:
    """What the modes that are on make of a function that `who` offers."""
    for mode in registry.modes:
        function = mode.wrap(op, dispatch_key, who, function)
    return function


def _results(op: Op, dispatch_key: DispatchKey) -> tuple[Any, type]:
    """The dispatch key of the result, or those of several, and the class of the device's arrays."""
    results = tuple(dispatch_key.with_dtype(result(dispatch_key.dtype)) for result in op.rule.results)
    return results if op.outputs else results[0], dispatch_key.runtime.array_type


def _checking_shapes(op: Op, kernel: Callable) -> Callable:
    """`kernel`, called only with arguments that the op's shape rule accepts."""

    def checked(*arguments, **options):
        shape_of(op, arguments)
        return kernel(*arguments, **options)

    return checked


def _array_positions(op: Op, kinds=("tensor", "optional")) -> list[int]:
    return [i for i, p in enumerate(op.kernel_parameters) if p.kind in kinds]


def _converting(compute: dtype, op: Op, dispatch_key: DispatchKey, kernel: Callable) -> Callable:
    """`kernel` for operands of another dtype than the one it computes in: they are cast first."""
    positions, cast = _array_positions(op), dispatch_key.runtime.cast
    if op.update:
        return _on_copies(
            op,
            kernel,
            lambda array: cast(array, compute),
            lambda changed: cast(changed, dispatch_key.dtype),
            dispatch_key,
        )
    several = [i for i, p in enumerate(op.kernel_parameters) if p.kind == "tensors"]

    def converted(*arguments):
        changed = list(arguments)
        for i in positions:
            if changed[i] is not None:
                changed[i] = cast(changed[i], compute)
        for i in several:
            changed[i] = [cast(array, compute) for array in changed[i]]
        return kernel(*changed)

    return unheard(converted)


def _on_copies(op: Op, kernel: Callable, there: Callable, back: Callable, dispatch_key: DispatchKey) -> Callable:
    """The kernel of an update, for arrays of `dispatch_key`, on what `there` makes of them; what it changed comes
    `back`. Counts it takes wherever they lie."""
    parameters, copy = op.kernel_parameters, dispatch_key.runtime.copy

    def copied(p, value):
        if p.kind == "tensors" and p.role != "counts":
            return [there(array) for array in value]
        return there(value) if p.kind == "index" else value

    def stepped(*arguments):
        copies = [*map(copied, parameters, arguments)]
        kernel(*copies)
        for p, arrays, changed in zip(parameters, arguments, copies):
            if p.role == "changed":
                for array, result in zip(arrays, changed):
                    copy(array, back(result))

    return unheard(stepped)


class Conversion(NamedTuple):
    """What a kernel is made of that converts its operands, and perhaps its results: its attribute ``conversion``.

    Attributes: ``compute`` the dtype in which ``kernel`` computes; ``around`` makes the same of another such kernel.
    """

    compute: dtype
    kernel: Callable
    around: Callable[[Callable], Callable]


def _computing_in(wide: dtype, op: Op, dispatch_key: DispatchKey, kernel: Callable) -> Callable:
    """`kernel` of a wider dtype for a narrower one: operands are widened, floating results narrowed back."""
    made: Any = _narrowing(wide, op, dispatch_key, kernel)
    if made is not kernel:
        made.conversion = Conversion(wide, kernel, lambda other: _narrowing(wide, op, dispatch_key, other))
    return made


def _narrowing(wide: dtype, op: Op, dispatch_key: DispatchKey, kernel: Callable) -> Callable:
    widened, cast, wrap_array = (
        _converting(wide, op, dispatch_key, kernel),
        dispatch_key.runtime.cast,
        dispatch_key.runtime.wrap,
    )
    if op.update:
        return widened
    targets = [result(dispatch_key.dtype) for result in op.rule.results]
    array_type = dispatch_key.runtime.array_type

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


def _widening(op: Op, dispatch_key: DispatchKey) -> Callable:
    """The kernel of the dtype in which a half type is computed, for arrays of that half type."""
    wide = computed(dispatch_key.dtype)
    return _computing_in(wide, op, dispatch_key, op.table[dispatch_key.with_dtype(wide)][0])


def _shape_kernel(op: Op, dispatch_key: DispatchKey) -> Callable:
    """The kernel of the meta device: the op's shape rule; an update changes what has no elements."""
    if op.update:
        return lambda *arguments: None
    results = [result(dispatch_key.dtype).numpy for result in op.rule.results]

    def kernel(*arguments, out=None):
        shape = shape_of(op, arguments)
        if op.outputs:
            return tuple(map(MetaArray, shape, results))
        return MetaArray(shape, results[0])

    return kernel


def _geometry_kernel(op: Op, dispatch_key: DispatchKey) -> Callable:
    """The kernel of a view op on any device: the declaration's arithmetic on strides."""
    runtime, geometry = dispatch_key.runtime, op.body
    assert op.rule is not None
    seen_as = op.rule.results[0](dispatch_key.dtype)

    def reinterpreted(array, *attributes):
        itemsize = array.dtype.itemsize
        strides = tuple(s // itemsize for s in array.strides)
        result = geometry((tuple(array.shape), strides, runtime.storage_offset(array)), *attributes)
        return runtime.as_strided(array, *result, seen_as)

    return geometry_kernel(op, runtime) if seen_as is dispatch_key.dtype else reinterpreted


def geometry_kernel(op: Op, runtime: Runtime) -> Callable:
    """The kernel of a view op that keeps the dtype, by the declaration's arithmetic on strides."""
    geometry = op.body

    def kernel(array, *attributes):
        itemsize = array.dtype.itemsize
        strides = tuple(s // itemsize for s in array.strides)
        result = geometry((tuple(array.shape), strides, runtime.storage_offset(array)), *attributes)
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


def body_kernel(op: Op, dispatch_key: DispatchKey) -> Callable:
    """A composite's body as a kernel on arrays, for composites that have a gradient of their own."""
    kinds = [p.kind for p in op.kernel_parameters]
    names = [p.name for p in op.kernel_parameters]
    device_ = dispatch_key.device
    body = op.body

    def tensor(array):
        return wrap(array, DispatchKey.intern(device_, dtypes.of_numpy(array.dtype), dispatch_key.runtime))

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


def fallback_kernel(op: Op, dispatch_key: DispatchKey, other: DispatchKey) -> Callable:
    """A kernel that copies to `other`, the dispatch key of the fallback device, computes there and copies back."""
    kernel, _, array_type, _ = op.table[other]
    if kernel is None:
        raise KernelNotFoundError(f"{op.name}: neither {dispatch_key} nor the fallback {other} has a kernel")
    kinds = [p.kind for p in op.kernel_parameters]
    runtime, index = dispatch_key.runtime, dispatch_key.device.index

    def there(value):
        return None if value is None else other.runtime.upload(runtime.download(value), other.device.index)

    def back(value):
        if value.__class__ is not array_type:
            value = other.runtime.wrap(value)
        return runtime.upload(other.runtime.download(value), index)

    if op.update:
        return _on_copies(op, kernel, there, back, dispatch_key)

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

    return unheard(copied)


registry.resolve = resolve
