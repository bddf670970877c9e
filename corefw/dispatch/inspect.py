"""What a user can ask of the registry: which backends there are, which one is asked, and why a kernel was chosen."""

from __future__ import annotations

from dataclasses import dataclass

from corefw import dtypes
from corefw.dispatch import plugins
from corefw.dispatch.operands import constant, result_type
from corefw.dispatch.registry import Op, place_of, registry
from corefw.dispatch.resolution import decide
from corefw.errors import BackendError, CorefwError
from corefw.tensor import Tensor


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

    def __str__(self) -> str:
        state = "usable" if self.usable else f"not usable: {self.reason}"
        serves = ", ".join(self.devices) or "nothing"
        return f"{self.name} {self.version}: serves {serves}; {self.kernels} kernels; priority {self.priority}; {state}"


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

    Raises BackendError for a backend that is not there or not usable, with the reason.

    >>> import corefw as torch
    >>> with torch.backend("numpy"):
    ...     torch.ones(2) + 1
    tensor([2., 2.])
    """

    def __init__(self, *names: str):
        plugins.load(None)
        for name in names:
            if name in registry.failures:
                raise BackendError(f"backend '{name}' is broken: {registry.failures[name]}") from registry.failures[
                    name
                ]
            if name not in registry.backends:
                known = ", ".join(sorted(registry.backends)) or "none"
                raise BackendError(f"backend '{name}' is not installed; installed: {known}")
            if registry.backends[name].unusable:
                raise BackendError(f"backend '{name}' cannot be used: {registry.backends[name].unusable}")
        self.scope: dict[str, tuple[str, ...]] = {}
        for name in names:
            for kind in registry.backends[name].devices:
                self.scope[kind] = (*self.scope.get(kind, ()), name)

    def __enter__(self) -> None:
        registry.preferred.append(self.scope)
        registry.forget()

    def __exit__(self, *exception) -> None:
        registry.preferred.remove(self.scope)
        registry.forget()


def explain(op, *args, **kwargs) -> str:
    """Say which kernel would compute `op` on these arguments, and why, without running it.

    Args:
        op: a function of corefw or its name.
        args, kwargs: as for the op; only the tensors' devices and dtypes count.

    >>> import corefw as torch
    >>> print(torch.explain("linalg_inv", torch.eye(2)))
    linalg_inv(float32[2, 2] on cpu)
      place: cpu/float32, computed in float32
      numpy (priority 0): chosen
      -> kernel of backend 'numpy' (priority 0)
    """
    name = op if isinstance(op, str) else getattr(op, "__name__", str(op))
    declared = registry.ops.get(name.removesuffix("_")) if name not in registry.ops else registry.ops[name]
    if declared is None:
        raise ValueError(f"explain: no op is called {name!r}")
    lines = [
        f"{declared.name}({', '.join([*map(_describe, args), *(f'{k}={_describe(v)}' for k, v in kwargs.items())])})"
    ]
    if declared.rule is None:
        return "\n".join([*lines, "  a composition of other ops; no backend can replace it. -> its body"])
    place = _place(declared, args, kwargs)
    try:
        decision = decide(declared, place)
    except CorefwError as error:
        return "\n".join([*lines, f"  place: {place}", f"  -> error: {error}"])
    lines.append(f"  place: {place}, computed in {(decision.wide or decision.compute).name}")
    lines += [f"  {step}" for step in decision.trail]
    lines += [f"  mode: {type(mode).__name__}" for mode in registry.modes]
    return "\n".join([*lines, f"  -> {decision.how}"])


def _describe(value) -> str:
    if isinstance(value, Tensor):
        return f"{value.place.dtype.name}{list(value.array.shape)} on {value.place.device}"
    if isinstance(value, list | tuple) and any(isinstance(v, Tensor) for v in value):
        return "[" + ", ".join(map(_describe, value)) + "]"
    return repr(value)


def _place(op: Op, args, kwargs):
    """The place that the arguments' tensors agree on."""
    given = dict(zip((p.name for p in op.parameters), args, strict=False)) | kwargs
    tensors: list = []
    for p in op.parameters:
        value = given.get(p.name)
        if p.kind in ("tensor", "optional") and value is not None:
            tensors.append(value)
        elif p.kind == "tensors" and value is not None:
            tensors += value
        elif p.kind == "place" and value is not None:
            return value
    reference = next((t for t in tensors if isinstance(t, Tensor)), None)
    if reference is None:
        raise TypeError(f"explain: {op.name} needs at least one tensor among its arguments")
    tensors = [t if isinstance(t, Tensor) else constant(t, reference.place) for t in tensors]
    return place_of(reference.place.device, result_type(*tensors))
