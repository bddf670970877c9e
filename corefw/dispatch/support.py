"""What a backend has kernels for and what it lacks, how kernels are called, and which ops belong together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from corefw.dispatch.composition import named_by, named_ops
from corefw.dispatch.op import Op, Parameter
from corefw.dispatch.registry import registry

_KINDS = {
    "tensor": "array",
    "optional": "array | None",
    "index": "array",
    "tensors": "list[array]",
    "indices": "list[array | None]",
    "dim": "int",
    "dims": "tuple[int, ...] | None",
    "given_dims": "tuple[int, ...]",
    "sizes": "tuple[int, ...]",
    "rate": "float",
}


def kernel_ops() -> list[Op]:
    """All ops that a backend may have kernels for, by name; views need none, and collectives are for engines."""
    ops = {
        op.name: op
        for op in registry.declared.values()
        if op.rule is not None and not op.view and op.family != "collective"
    }
    return [ops[name] for name in sorted(ops)]


def signature(op: Op) -> str:
    """How a kernel of an op is called, and what it returns.

    >>> print(signature(registry.declared["convolution"]))
    convolution(input: array, weight: array, bias: array | None, stride: tuple, padding: tuple, dilation: tuple,
    transposed: bool, output_padding: tuple, groups: int) -> array
    >>> print(signature(registry.declared["scale_step"]))
    scale_step(tensors: list[array] changed in place, factor: array) -> None
    """
    parameters = ", ".join(f"{p.name}: {_annotation(p)}" for p in op.kernel_parameters)
    return f"{op.name}({parameters}) -> {_result(op)}"


def _annotation(parameter: Parameter) -> str:
    kind = _KINDS.get(parameter.kind, parameter.annotation or "Any")
    if parameter.role == "counts":
        kind = "list[host array]"
    elif parameter.kind == "index" and parameter.annotation.endswith("| None"):
        kind = "array | None"
    return f"{kind} changed in place" if parameter.role else kind


def _result(op: Op) -> str:
    if op.update:
        return "None"
    if op.outputs:
        return f"tuple[{', '.join(f'{name}: array' for name in op.outputs)}]"
    return "array"


@cache
def unlocked() -> dict[str, tuple[str, ...]]:
    """{op: the public compositions that name it, themselves or through others}, for ops that may have kernels."""
    found: dict[str, set[str]] = {}
    for op in registry.declared.values():
        if op.primitive or op.view or not op.public:
            continue
        waiting, seen = named_ops(op), set[str]()
        while waiting:
            one = waiting.pop()
            if one.name not in seen:
                seen.add(one.name)
                found.setdefault(one.name, set()).add(op.name)
                waiting += [] if one.primitive else named_ops(one)
    return {name: tuple(sorted(users)) for name, users in found.items()}


@cache
def companions() -> dict[str, tuple[str, ...]]:
    """{op: the ops that belong to it}: those without a public name that its gradient runs.

    >>> companions()["matmul"]
    ('adjoint_matmul', 'matmul_adjoint')
    >>> companions()["softmax"]
    ('softmax_backward',)
    """
    found: dict[str, tuple[str, ...]] = {}
    ops = kernel_ops()
    for op in ops:
        run = [one for formula in op.gradients.values() for one in named_by(formula)]
        private = {one.name for one in run if one in ops and one is not op and not one.public}
        if private:
            found[op.name] = tuple(sorted(private))
    return found


@dataclass(frozen=True)
class Support:
    """What a backend has on one device type.

    Attributes: ``present`` the ops it has kernels for; ``primitives`` those it lacks though nothing else gives them
    on this device; ``composites`` those it lacks that run as compositions of others.
    """

    backend: str
    device: str
    present: tuple[str, ...]
    primitives: tuple[str, ...]
    composites: tuple[str, ...]

    @property
    def incomplete(self) -> dict[str, tuple[str, ...]]:
        """{op that it has: the ops it lacks that belong to it}."""
        have = {*self.present}
        lacking = {op: tuple(one for one in companions().get(op, ()) if one not in have) for op in self.present}
        return {op: missing for op, missing in lacking.items() if missing}


def support(backend: str, device: str) -> Support:
    """What a registered backend has kernels for on a device type, and what it lacks.

    >>> lacks = support("numpy", "cpu")
    >>> lacks.primitives, "adam_step" in lacks.present, "gelu" in lacks.composites
    ((), True, True)
    """
    has = {kernel.op for kernel in registry.backends[backend].kernels.get(device, ())}
    ops = kernel_ops()
    return Support(
        backend,
        device,
        tuple(op.name for op in ops if op.name in has),
        tuple(op.name for op in ops if op.primitive and op.name not in has),
        tuple(op.name for op in ops if not op.primitive and op.name not in has),
    )
