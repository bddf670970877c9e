"""What ops do that are given tensors in parts: each process computes with its parts, where a rule says how these must
lie; where none does, with the whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, partial
from math import prod
from typing import Any

from corefw.dispatch.batching.calls import is_elementwise
from corefw.dispatch.op import Op
from corefw.dispatch.out import tensors_in
from corefw.dispatch.promotion import check_same_shape
from corefw.dispatch.slow_path import call_of
from corefw.dispatch.sparse.keys import Kind, LayoutKey, kinds
from corefw.distributed.device_mesh import DeviceMesh
from corefw.distributed.tensor.parts import PartsRuntime, assembled, in_parts, local_of, placed, whole_of
from corefw.distributed.tensor.placements import WHOLE, Partial, Placement, Spec
from corefw.distributed.tensor.shardings import Sharding, cheapest, parsed, sizes_of
from corefw.errors import LayoutError
from corefw.graph.grad_mode import mode, no_recording
from corefw.graph.inplace import check_writable
from corefw.tensor import Constant, Tensor

Shapes = tuple[tuple[int, ...] | None, ...]

#: by the op's name, what says for a call how it may be cut, given the op's arguments: a line of the notation, a
#: `Sharding`, the same for like calls, or None where only whole tensors do
rules: dict[str, Callable[..., str | Sharding | None]] = {}
#: by the op's name, what a call of it is in other ops; NotImplemented leaves it to its rule
meanings: dict[str, Callable[..., Any]] = {}
#: whether plain tensors may stand beside those in parts: the same on all processes
mixing: ContextVar[bool] = ContextVar("mixing", default=False)


def rule(*names: str) -> Callable[[Callable], Callable]:
    """Make a function the rule of ops. It is given all arguments in the order of the op's signature."""

    def decorate(function: Callable) -> Callable:
        rules.update(dict.fromkeys(names, function))
        return function

    return decorate


def meaning(*names: str) -> Callable[[Callable], Callable]:
    """Make a function what ops are in other ops. It is given all arguments in the order of the op's signature."""

    def decorate(function: Callable) -> Callable:
        meanings.update(dict.fromkeys(names, function))
        return function

    return decorate


@contextmanager
def whole_beside():
    """Let plain tensors stand beside those in parts: the same on all processes."""
    token = mixing.set(True)
    try:
        yield
    finally:
        mixing.reset(token)


# -- arguments --------------------------------------------------------------------------------------------------------
_LISTS, _ALONE = ("tensors", "indices"), ("tensor", "optional", "index")


def _operands(op: Op, values: Sequence[Any]) -> list[Any]:
    """The arguments that are tensors, or numbers in their place; None for a missing one."""
    found: list[Any] = []
    for p, value in zip(op.parameters, values, strict=True):
        if p.kind in _LISTS:
            found += value
        elif p.kind in _ALONE:
            found.append(value.number if value.__class__ is Constant else value)
    return found


def _refilled(op: Op, values: Sequence[Any], operands: Sequence[Any]) -> list[Any]:
    """All arguments of a call, with other operands in the place of its own; a dispatch key becomes that of parts."""
    rest = iter(operands)
    return [
        [next(rest) for _ in value]
        if p.kind in _LISTS
        else next(rest)
        if p.kind in _ALONE
        else value.dense
        if value.__class__ is LayoutKey
        else value
        for p, value in zip(op.parameters, values, strict=True)
    ]


def _mesh_of(op: Op, operands: Sequence[Any]) -> DeviceMesh:
    """The mesh of the tensors in parts; refuses several, and plain tensors beside them."""
    tensors = [t for t in operands if isinstance(t, Tensor)]
    meshes = list(dict.fromkeys(t.array.spec.mesh for t in tensors if in_parts(t)))
    if len(meshes) > 1:
        raise NotImplementedError(f"{op.name}: DTensors on different meshes, {meshes}: bring them to one first")
    if not mixing.get() and any(not in_parts(t) and t.array.ndim for t in tensors):
        raise RuntimeError(
            f"{op.name}: got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor before "
            "calling distributed operators! distribute_tensor and DTensor.from_local make them"
        )
    return meshes[0]


def _shape(operand: Any) -> tuple[int, ...] | None:
    return None if operand is None else tuple(operand.array.shape) if isinstance(operand, Tensor) else ()


# -- where they lie ---------------------------------------------------------------------------------------------------
class _Plan:
    """Where all that a call has to do with lies.

    Args:
        sharding: what the rule says.
        shapes: those of the operands.
        now: where these lie.
        moving: those that want gradients.
        mesh: the processes.

    Attributes: ``operands`` where each must lie; ``gradients`` the placements of the gradients of their parts;
    ``results`` where each lies; ``again`` the placements of the gradients of the results' gradients; ``cut`` the label,
    of those with a function of their own, that is cut.
    """

    def __init__(self, sharding: Sharding, shapes: Shapes, now: Sequence[Any], moving: Set[int], mesh: DeviceMesh):
        self.sharding, self.cut, self._times = sharding, None, dict[Any, int]()
        self._sizes, self._lengths = sizes_of(sharding, shapes), _lengths(sharding, shapes)
        numels = [0 if shape is None else prod(shape) for shape in shapes]
        operands: list[list[Placement]] = [[] for _ in now]
        gradients: list[list[Placement]] = [[] for _ in now]
        results: list[list[Placement]] = [[] for _ in sharding.results]
        again: list[list[Placement]] = [[] for _ in sharding.results]
        for dim, count in enumerate(mesh.shape):
            choice = cheapest(sharding, [p[dim] for p in now], numels, moving, count, partial(self._fits, count))
            self._times[choice.label] = self._times.get(choice.label, 1) * count
            self.cut = choice.label if choice.label in sharding.local else self.cut
            # Where a label is cut, each process has its term of the gradient of what is whole.
            whole = WHOLE if choice.label is None else Partial()
            for found, other, placements in (
                (operands, gradients, choice.operands),
                (results, again, choice.results),
            ):
                for where, of_gradient, p in zip(found, other, placements):
                    where.append(p)
                    of_gradient.append(p if p.is_shard() else whole)
        self.operands, self.results = ([Spec(mesh, tuple(p)) for p in each] for each in (operands, results))
        self.gradients, self.again = gradients, again

    def _fits(self, count: int, label: Any) -> bool:
        """Whether a label may be cut once more: parts of dimensions of different lengths must be equal."""
        times = self._times.get(label, 1) * count
        return len(self._lengths[label]) == 1 or all(n % times == 0 for n in self._lengths[label])

    def result(self, local: Any, i: int, title: str) -> Any:
        """The tensor whose part a call has found as its result i; of several parts alike the rule tells once."""
        if not isinstance(local, Tensor):
            return local
        i = min(i, len(self.results) - 1)
        shape, labels = self.sharding.shape, self.sharding.results[i]
        if shape is None:
            shape = tuple(self._sizes.get(label, n) for label, n in zip(labels, local.shape)) if labels else local.shape
        return assembled(local, shape, self.results[i], title, again=self.again[i])


def _lengths(sharding: Sharding, shapes: Sequence[Any]) -> dict[Any, set[int]]:
    """{label: the lengths of its dimensions}, of which views have different ones."""
    found: dict[Any, set[int]] = {}
    for labels, shape in [
        *zip(sharding.operands, shapes),
        *((labels, sharding.shape or ()) for labels in sharding.results),
    ]:
        for label, n in zip(labels, shape or ()):
            found.setdefault(label, set()).add(n)
    return found


@lru_cache(4096)
def _planned(
    said: str | Sharding | None, shapes: Shapes, now: tuple, moving: frozenset[int], mesh: DeviceMesh
) -> _Plan:
    if said is None:
        said = Sharding([(None,) * len(shape or ()) for shape in shapes], [()])
    return _Plan(parsed(said, shapes) if isinstance(said, str) else said, shapes, now, moving, mesh)


def _plan(op: Op, values: Sequence[Any], operands: Sequence[Any], mesh: DeviceMesh) -> _Plan:
    """Where a call has its operands and results, by the rule of the op; all whole if it has none."""
    shapes = tuple(map(_shape, operands))
    now = tuple(t.array.spec.placements if in_parts(t) else (WHOLE,) * mesh.ndim for t in operands)
    wanted = enumerate(operands) if mode.recording else ()
    moving = frozenset(i for i, t in wanted if isinstance(t, Tensor) and t.requires_grad)
    if op.name in rules:
        said = rules[op.name](*values)
    else:
        said = " ".join(["~..."] * len(shapes)) + " -> ..." if is_elementwise(op) else None
    return _planned(said, shapes, now, moving, mesh)


# -- calls ------------------------------------------------------------------------------------------------------------
def _run(op: Op, values: Sequence[Any]) -> Any:
    """What an op is of tensors in parts: that of the parts, where they lie as its rule wants them."""
    operands = _operands(op, values)
    mesh = _mesh_of(op, operands)
    plan = _plan(op, values, operands, mesh)
    moved, parts = [], []
    for one, spec, gradient in zip(operands, plan.operands, plan.gradients):
        if isinstance(one, Tensor):
            moved.append(placed(one if in_parts(one) else whole_of(one, mesh), spec))
            one = local_of(moved[-1], gradient)
        parts.append(one)
    arguments, sharding = _refilled(op, values, parts), plan.sharding
    if sharding.resized is not None:
        arguments[sharding.resized] = plan.results[0].extent(sharding.shape or ())[0]
    if plan.cut is None:
        positional, keywords = call_of(op, arguments)
        found = (sharding.instead or op.function)(*positional, **keywords)
    else:
        found = sharding.local[plan.cut](moved, *arguments)
    if not isinstance(found, (tuple, list)):
        results = [plan.result(found, 0, op.node_name)]
    else:
        results = [plan.result(one, i, op.node_name) for i, one in enumerate(found)]
    if op.view:
        for one, part in zip(results, found if isinstance(found, tuple) else (found,)):
            is_shared = moved[0] is values[0] and part.version is parts[0].version
            one.version, one.array.is_view = values[0].version, True
            one.array.is_copy = values[0].array.is_copy or not is_shared
    if not isinstance(found, (tuple, list)):
        return results[0]
    return found._make(results) if hasattr(found, "_make") else type(found)(results)


class _InParts(Kind):
    """Tensors in parts."""

    def runtime(self, dense, layout):
        return PartsRuntime(dense, layout)

    def refusal(self, name: str) -> LayoutError:
        return LayoutError(f"{name}: not for tensors in parts")

    def entry(self, op: Op) -> tuple:
        if op.primitive or op.gradients:
            raise self.refusal(op.name)
        return None, partial(self._body, op), None, False

    def _body(self, op: Op, *values: Any, **keywords: Any) -> Any:
        if op.name in rules or op.name in meanings:
            return self.compute(op, *values, *keywords.values())
        with whole_beside():
            return op.body(*values, **keywords)

    def compute(self, op: Op, *values: Any) -> Any:
        if op.update:
            return _update(op, values)
        if op.name in meanings and (meant := meanings[op.name](*values)) is not NotImplemented:
            return meant
        if not any(map(in_parts, tensors_in(values))):
            return _new(op, values)
        return _run(op, values)

    def compute_into(self, op: Op, *values: Any) -> Tensor:
        target = values[0]
        if not in_parts(target):
            raise RuntimeError(f"{op.name}_: a plain tensor cannot take the result of DTensors: distribute it first")
        if target.array.is_copy:
            raise RuntimeError(
                f"{op.name}_: this view of a DTensor had to be copied, or sent by other processes, so the change would "
                "be lost: redistribute the tensor so that the view lies as it does, or change to_local()"
            )
        is_recorded = mode.recording and any(t.requires_grad for t in tensors_in(values))
        if is_recorded:
            check_writable(target)
            if target.array.is_view:
                raise NotImplementedError(
                    f"{op.name}_: changes of a view of a DTensor are not recorded: use no_grad, or the function "
                    f"{op.name} and torch.where"
                )
            values = (_copied(target), *values[1:])  # what gradients need of it is as it was
        result = self.compute(op, *values)
        if result.array.shape != target.array.shape:
            check_same_shape(result.array.shape, target.array.shape)
        result = placed(result, target.array.spec)
        with no_recording():
            target.array.local.copy_(result.array.local)
        target.version[0] += 1
        if is_recorded:
            target.node = result.node
        return target


kinds[Spec] = _InParts()


def _copied(tensor: Any) -> Any:
    """A tensor with the same elements and history, in memory of its own."""
    with no_recording():
        made = tensor.clone()
    made.node = tensor.node
    return made


def _new(op: Op, values: Sequence[Any]) -> Any:
    """What an op makes of a dispatch key and no tensor: one that lies as the key says. Of what is drawn each process
    draws the whole, so that the numbers are those of one process."""
    key = next(value for value in values if value.__class__ is LayoutKey)
    if op.name in ("zeros_at", "full_at"):
        spec = key.runtime.spec_of(values[1])
        return assembled(op.function(key.dense, spec.extent(values[1])[0], *values[2:]), values[1], spec)
    made = whole_of(op.function(*(key.dense if value is key else value for value in values)), key.layout.mesh)
    return placed(made, key.runtime.spec_of(made.array.shape))


def _update(op: Op, values: Sequence[Any]) -> None:
    """Change lists of tensors in place: each process its parts, where those of the first list lie."""
    specs = [tensor.array.spec if in_parts(tensor) else None for tensor in values[0]]
    arguments: list[Any] = []
    for p, value in zip(op.parameters, values, strict=True):
        if p.kind == "tensors":
            for tensor, spec in zip(value, specs):
                if in_parts(tensor) != (spec is not None) and tensor.array.ndim:
                    raise RuntimeError(f"{op.name}: got mixed torch.Tensor and DTensor in '{p.name}' and beside it")
                if p.role and in_parts(tensor) and tensor.array.spec != spec:
                    where = tensor.array.spec.placements
                    raise RuntimeError(f"{op.name}: of '{p.name}' one lies at {where}, what it belongs to elsewhere")
            value = [placed(t, spec).array.local if in_parts(t) and spec else t for t, spec in zip(value, specs)]
        elif in_parts(value):
            value = placed(value, value.array.spec.whole).array.local
        arguments.append(value)
    positional, keywords = call_of(op, arguments)
    op.function(*positional, **keywords)
    for p, value in zip(op.parameters, values, strict=True):
        for tensor in value if p.role else ():
            tensor.version[0] += in_parts(tensor)
