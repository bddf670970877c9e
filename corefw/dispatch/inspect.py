"""What a user can ask of the registry: which backends there are, which one is asked, and why a kernel was chosen."""

from __future__ import annotations

from dataclasses import dataclass, field
from textwrap import shorten

from corefw import dtypes
from corefw.devices import DispatchKey, get_default_device
from corefw.dispatch import plugins
from corefw.dispatch.batching.arrays import BatchedDevice, LevelDevice, base_of, depths
from corefw.dispatch.batching.calls import how, refused, said
from corefw.dispatch.composition import named_ops, rehearse
from corefw.dispatch.constants import operand
from corefw.dispatch.measured import figures
from corefw.dispatch.op import Op
from corefw.dispatch.overriding import Explaining, stand_ins
from corefw.dispatch.preferences import usable_backend
from corefw.dispatch.promotion import result_type
from corefw.dispatch.registry import dispatch_key_of, registry
from corefw.dispatch.resolution import decide, fallback_key
from corefw.errors import CorefwError, did_you_mean
from corefw.tensor import Tensor

_UNMEASURED = "not measured yet: that is done when operands of a size first come"


@dataclass(frozen=True)
class BackendInfo:
    """One installed backend: what it serves, or why it cannot."""

    name: str
    version: str
    devices: tuple[str, ...]
    dtypes: tuple[str, ...]
    kernels: int
    priority: int
    usable: bool
    reason: str
    detail: str = ""
    dropped: tuple[str, ...] = ()  # the ops it has kernels for that this corefw does not know
    stored: dict[str, tuple[str, ...]] = field(default_factory=dict)  # the dtypes of each device that it owns
    max_ulp: dict[str, float] = field(default_factory=dict)  # what kernels of ops declare to be wrong by
    varying: tuple[str, ...] = ()  # the ops whose kernels are not deterministic
    varying_unless_asked: tuple[str, ...] = ()  # the ops whose kernels are so if deterministic ones are asked for

    def __str__(self) -> str:
        state = "usable" if self.usable else f"not usable: {self.reason}"
        serves = ", ".join(self.devices) or "nothing"
        name = f"{self.name} ({self.detail})" if self.detail else self.name
        return f"{name} {self.version}: serves {serves}; {self.kernels} kernels; priority {self.priority}; {state}"


def backends() -> list[BackendInfo]:
    """All installed backends, also broken, unusable and disabled ones with the reason.

    >>> import corefw as torch
    >>> [b.name for b in torch.backends() if b.name == "numpy" and b.usable]
    ['numpy']
    """
    plugins.load(None)
    found = []
    for backend in registry.backends.values():
        kernels = [k for ks in backend.kernels.values() for k in ks]
        taken = {d.name for k in kernels for d in k.dtypes} | {d.name for d in backend.compute_dtype}
        reason = backend.unusable or ("disabled" if backend.name in registry.disabled else "")
        found.append(
            BackendInfo(
                name=backend.name,
                version=backend.version,
                devices=tuple(backend.devices),
                dtypes=tuple(d.name for d in dtypes.ALL if d.name in taken),
                kernels=len(kernels),
                priority=backend.priority,
                usable=not reason,
                reason=reason,
                detail=backend.detail,
                dropped=registry.dropped[backend.name],
                stored={
                    kind: tuple(d.name for d in dtypes.ALL if d in runtime.dtypes)
                    for kind, runtime in backend.runtimes.items()
                },
                max_ulp={k.op: k.max_ulp for k in kernels if k.max_ulp is not None},
                varying=tuple(sorted({k.op for k in kernels if not k.deterministic})),
                varying_unless_asked=tuple(sorted({k.op for k in kernels if k.deterministic == "if asked"})),
            )
        )
    for name, error in registry.failures.items():
        found.append(BackendInfo(name, "?", (), (), 0, 0, False, f"{type(error).__name__}: {error}"))
    for name in sorted(registry.disabled - {b.name for b in found}):
        found.append(BackendInfo(name, "?", (), (), 0, 0, False, "disabled"))
    return found


class backend:
    """A with-block in which the named backends are asked first, best first, on every device they serve.

    Args:
        names: backends, e.g. "numpy".

    Raises RuntimeError for a backend that is not there or not usable, with the reason.

    >>> import corefw as torch
    >>> with torch.backend("numpy"):
    ...     torch.ones(2) + 1
    tensor([2., 2.])
    """

    def __init__(self, *names: str):
        self.scope: dict[str, tuple[str, ...]] = {}
        for name in names:
            for kind in usable_backend(name).devices:
                self.scope[kind] = (*self.scope.get(kind, ()), name)

    def __enter__(self) -> None:
        registry.preferred.append(self.scope)
        registry.forget()

    def __exit__(self, *exception) -> None:
        registry.preferred.remove(self.scope)
        registry.forget()


def explain(op, *args, **kwargs) -> str:
    """Say which kernel would compute `op` on these arguments, and why, without running it.

    Of an op that is made of others, these are followed to their kernels; so are those that compute it for all examples,
    inside of `func.vmap`. Of dual tensors (`autograd.forward_ad`) it is told how the tangent is computed.
    Inside of `autocast` it says what the arguments are cast to, and what computes them then. Of what `compile` returned
    it is told which calls are replayed, and why others are not.

    Args:
        op: a function of corefw or its name.
        args, kwargs: as for the op; only the tensors' devices, dtypes and shapes count. Without a tensor, the default
            device and dtype are meant.

    Raises ValueError for an unknown op.

    >>> import corefw as torch
    >>> print(torch.explain("linalg_inv", torch.eye(2)))
    linalg_inv(float32[2, 2] on cpu)
      dispatch key: cpu/float32, computed in float32
      numpy (priority 0): chosen
      inside of vmap: all examples at once, by its rule
      -> kernel of backend 'numpy' (priority 0)
    """
    if hasattr(type(op), "explain_compiled"):
        return op.explain_compiled()
    name = op if isinstance(op, str) else getattr(op, "__name__", str(op))
    declared = (
        registry.declared.get(name.removesuffix("_")) if name not in registry.declared else registry.declared[name]
    )
    if declared is None:
        raise ValueError(f"explain: no op is called {name!r}{did_you_mean(name, registry.declared)}")
    answer = stand_ins.get(declared.function)  # type: ignore[call-overload]  # perhaps no plain function
    if isinstance(answer, Explaining):
        return answer.explain(_explain, args, kwargs)
    return _explain(declared, args, kwargs)


def _explain(declared: Op, args, kwargs, *first: str) -> str:
    """What is said of an op whose arguments are as they are given; `first` is said before."""
    given = ", ".join([*map(_describe, args), *(f"{k}={_describe(v)}" for k, v in kwargs.items())])
    dispatch_key = _dispatch_key(declared, args, kwargs)
    if dispatch_key.device.__class__ is BatchedDevice:
        lines, outcome = _for_all_examples(declared, dispatch_key, args, kwargs)
        return _explained(declared, given, [*first, *lines], outcome)
    lines, measured, outcome = _decision(declared, dispatch_key)
    lines += measured
    if isinstance(dispatch_key.device, LevelDevice):
        lines += dispatch_key.device.said(declared)
    if _is_composed(declared, dispatch_key):
        lines += _inside(declared, dispatch_key, args, kwargs)
    return _explained(declared, given, [*first, *lines, f"inside of vmap: {said(declared)}"], outcome)


def _explained(op: Op, given: str, lines: list[str], outcome: str) -> str:
    lines += [f"mode: {type(mode).__name__}" for mode in registry.modes]
    return "\n  ".join([f"{op.name}({given})", *lines, f"-> {outcome}"])


def _for_all_examples(op: Op, dispatch_key: DispatchKey, args, kwargs) -> tuple[list[str], str]:
    """What is said of an op on batched tensors, and what comes of it."""
    present = sorted(depths(dispatch_key.device).items())
    sizes = " x ".join(str(level.examples) for _, level in present if level.__class__ is BatchedDevice)
    lines = [f"dispatch key: {dispatch_key}, a batch of {sizes} examples"]
    lines += [line for _, level in present for line in level.said(op)]
    if how(op) == "refused":
        return [*lines, str(refused(op))], said(op)
    return lines + _inside(op, dispatch_key, args, kwargs), said(op)


def _decision(op: Op, dispatch_key: DispatchKey) -> tuple[list[str], list[str], str]:
    """What is weighed for an op at a dispatch key, what was measured of it, and what comes of it."""
    if op.rule is None:
        said = "a composition of other ops; no backend can replace it"
        return [f"dispatch key: {dispatch_key}", said], [], "its body"
    try:
        decision = decide(op, dispatch_key)
    except CorefwError as error:
        other = fallback_key(op, dispatch_key)
        if other is None:
            return [f"dispatch key: {dispatch_key}"], [], f"error: {error}"
        lines, measured, outcome = _decision(op, other)
        lines = [f"no kernel for {dispatch_key}; copied to the fallback {other.device} and back", *lines[1:]]
        return [f"dispatch key: {dispatch_key}", *lines], measured, f"fallback to {registry.fallback}: {outcome}"
    computed = (decision.wide or decision.compute).name
    measured = (figures(op, dispatch_key) or [_UNMEASURED]) if decision.rivals else []
    return [f"dispatch key: {dispatch_key}, computed in {computed}", *decision.trail], measured, decision.how


def _is_composed(op: Op, dispatch_key: DispatchKey) -> bool:
    """Whether an op runs its body, made of other ops."""
    if op.primitive or op.view:
        return False
    return op.rule is None or (op.rule.accepts(dispatch_key.dtype) and decide(op, dispatch_key).backend is None)


def _inside(op: Op, dispatch_key: DispatchKey, args, kwargs) -> list[str]:
    """What the ops inside of one that is composed would run."""

    def whole(one: Op, at: DispatchKey) -> bool:
        return not _is_composed(one, at)

    try:
        lines = []
        for one, at in rehearse(op, whole, args, kwargs, base_of(dispatch_key.device)):
            _, measured, outcome = _decision(one, at)
            lines += [f"{one.name} at {at}: {outcome}", *(f"  {line}" for line in measured)]
        return lines
    except Exception as error:  # whatever the body makes of these arguments, or of tensors without elements
        reason = shorten(f"{type(error).__name__}: {error}", 120)
        named = ", ".join(one.name for one in named_ops(op)) or "no op with kernels"
        return [f"cannot be followed with these arguments ({reason}); its body names {named}"]


def _describe(value) -> str:
    if isinstance(value, Tensor):
        return f"{value.dispatch_key.dtype.name}{list(value.array.shape)} on {value.dispatch_key.device}"
    if isinstance(value, list | tuple) and any(isinstance(v, Tensor) for v in value):
        return "[" + ", ".join(map(_describe, value)) + "]"
    return repr(value)


def _dispatch_key(op: Op, args, kwargs) -> DispatchKey:
    """The dispatch key that the arguments' tensors agree on, by default that of new tensors."""
    given = dict(zip((p.name for p in op.parameters), args, strict=False)) | kwargs
    tensors: list = []
    for p in op.parameters:
        value = given.get(p.name)
        if p.kind in ("tensor", "optional") and value is not None:
            tensors.append(value)
        elif p.kind == "tensors" and value is not None:
            tensors += value
        elif p.kind == "dispatch_key" and value is not None:
            return value
    reference = next((t for t in tensors if isinstance(t, Tensor)), None)
    if reference is None:
        return dispatch_key_of(get_default_device(), dtypes.get_default_dtype())
    tensors = [t if isinstance(t, Tensor) else operand(t, reference.dispatch_key) for t in tensors]
    return dispatch_key_of(reference.dispatch_key.device, result_type(*tensors))
