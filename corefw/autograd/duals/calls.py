"""What ops do that are given dual tensors: compute on the primals, and carry the tangents along.

The tangent of a result is, in this order: what the op's declaration says; the op itself on tangents, where it is
linear; the gradient formula, where each element of the result depends on one of the operand alone, or each of the
operand is part of one of the result; what the body carries along; or the derivative of the vector-Jacobian product,
which is linear in its vector.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cache, reduce
from typing import Any

from corefw import dtypes
from corefw.autograd.differentiate import grad, recorded_gradients
from corefw.autograd.duals.arrays import TIMELESS, DualArray, Scope, below, scope_at
from corefw.devices import DispatchKey
from corefw.dispatch.batching.arrays import BatchingError, LevelDevice, OperandsChanged, base_of, depths, lift
from corefw.dispatch.declare import ops
from corefw.dispatch.generation.recording import argument_names
from corefw.dispatch.op import Op
from corefw.dispatch.registry import dispatch_key_of
from corefw.graph.grad_mode import mode, no_recording
from corefw.graph.nodes import leaf_node
from corefw.shapes import broadcast, same_shape
from corefw.tensor import Tensor, wrap

_TENSORS = ("tensor", "optional", "index")
_ARRAYS = (*_TENSORS, "tensors", "indices")


class ForwardError(BatchingError):
    """What a function does cannot be differentiated forward."""


# -- which way ------------------------------------------------------------------------------------------------------
def how(op: Op) -> str:
    """How an op carries tangents along: "view", "formula", "linear", "elementwise", "reduction", "body", "twice
    reverse", or "constant" if no gradient flows through it.

    >>> from corefw.dispatch.registry import registry
    >>> [how(registry.declared[name]) for name in ("matmul", "exp", "softmax", "layer_norm", "argmax")]
    ['linear', 'elementwise', 'formula', 'body', 'constant']
    """
    if op.view:
        return "view"
    if op.tangent_formula is not None:
        return "formula"
    if op.linear_in:
        return "linear"
    if not op.gradients:
        return "constant" if op.primitive else "body"
    if is_elementwise(op):
        return "elementwise"
    if is_reduction(op):
        return "reduction"
    return "twice reverse" if op.primitive or op.opaque else "body"


#: what each way is, in words
MEANINGS = {
    "view": "the same view of it",
    "formula": "by the formula of the declaration",
    "linear": "by the op itself, which is linear",
    "elementwise": "by the gradient formula: the Jacobian is diagonal",
    "reduction": "by the gradient formula: a slope for each element",
    "body": "carried along by the body",
    "twice reverse": "by the derivative of the vector-Jacobian product",
    "constant": "none: no gradient flows through the op",
}


def is_elementwise(op: Op) -> bool:
    """Whether each element of the result depends on the operands' elements at its place alone, so that the Jacobian is
    diagonal: its own transpose."""
    kinds = {p.kind for p in op.parameters}
    return (
        op.shape in (broadcast, same_shape)
        and not op.outputs
        and not kinds & {"dim", "dims", "given_dims", "tensors", "indices", "sizes"}
    )


def is_reduction(op: Op) -> bool:
    """Whether each element of the operand is part of one element of the result."""
    names = {p.name for p in op.parameters}
    return not op.outputs and {"input", "dim", "keepdim"} <= names and len(op.tensor_parameters) == 1


@cache
def _order(op: Op) -> tuple[list[str], list[str], str]:
    """The arguments of an op that its kernels know, by position and by keyword, and the one that says where it runs."""
    known = {p.name for p in op.kernel_parameters}
    place = next((p.name for p in op.parameters if p.kind == "dispatch_key"), "")
    positional: list[str] = []
    keywords: list[str] = []
    for i, p in enumerate(op.parameters):
        if p.name in known or p.name == place:
            (keywords if p.keyword_only or len(positional) < i else positional).append(p.name)
    return positional, keywords, place


# -- one call ---------------------------------------------------------------------------------------------------------
class Call:
    """A call of an op on primals and tangents, tensors of the device below.

    Attributes: ``values`` the kernel's arguments by name, tensors as primals; ``tangents`` those of some of them, lists
    with None where there is none.
    """

    def __init__(self, op: Op, inner: DispatchKey, values: dict[str, Any], tangents: dict[str, Any]):
        self.op, self.inner, self.values, self.tangents = op, inner, values, tangents

    def result(self, **replaced: Any) -> Any:
        """What the op gives, of other values for some of the arguments."""
        given = {**self.values, **replaced}
        positional, keywords, place = _order(self.op)
        if place:
            wanted = given.get("dtype")
            given[place] = self.inner if wanted is None else self.inner.with_dtype(dtypes.of_numpy(wanted))
        return self.op.function(*(given[name] for name in positional), **{name: given[name] for name in keywords})

    def of_formula(self, formula: Callable, out: Any, **more: Any) -> Any:
        """What a formula gives, whose arguments are named as those of gradients."""
        known = {**self.values, **more}
        if self.op.outputs:
            known |= zip(self.op.outputs, out)
        known["out"] = out
        return formula(*(self._known(name, known) for name in argument_names(formula)))

    def _known(self, name: str, known: dict[str, Any]) -> Any:
        if name in known:
            return known[name]
        if name.startswith("tangent_"):
            return self.tangents.get(name.removeprefix("tangent_"))
        of = known[name.removesuffix("_shape")]
        return [tuple(t.array.shape) for t in of] if isinstance(of, list) else tuple(of.array.shape)


def _formula(call: Call) -> tuple[Any, Any]:
    out = call.result()
    assert call.op.tangent_formula is not None
    return out, call.of_formula(call.op.tangent_formula, out)


def _linear(call: Call) -> tuple[Any, Any]:
    """The op is linear in some of its arguments: it is applied to their tangents."""
    op, out = call.op, call.result()
    together = [names for names in op.linear_in if any(name in call.tangents for name in names)]
    if {name for names in together for name in names}.issuperset(call.tangents):
        terms = [call.result(**{name: _filled(call, name) for name in names}) for names in together]
        return out, _summed(terms, out)
    return _twice_reverse(call)


def _filled(call: Call, name: str) -> Any:
    """The tangents of an argument, with zeros where there is none."""
    value, tangent = call.values[name], call.tangents.get(name)
    if isinstance(value, list):
        return [ops.zeros_like(v) if t is None else t for v, t in zip(value, tangent or [None] * len(value))]
    return (None if value is None else ops.zeros_like(value)) if tangent is None else tangent


def _summed(terms: Sequence[Any], out: Any) -> Any:
    if isinstance(out, tuple):
        return tuple(reduce(ops.add, parts) for parts in zip(*terms))
    return reduce(ops.add, terms) if terms else None


def _elementwise(call: Call) -> tuple[Any, Any]:
    """The Jacobian is diagonal, so that the gradient formula multiplies with it; of complex elements with its
    conjugate, which is undone."""
    op, out = call.op, call.result()
    is_complex = out.dispatch_key.dtype.is_complex
    if is_complex and not op.holomorphic:
        return _twice_reverse(call)
    if any(t.dispatch_key.dtype.is_complex is not is_complex for t in call.tangents.values()):
        return _twice_reverse(call)
    terms = []
    for names, formula in op.gradients.items():
        for name in names:
            if name not in call.tangents:
                continue
            given = call.tangents[name]
            given = given if given.array.shape == out.array.shape else given.expand(tuple(out.array.shape))
            needs = tuple(one == name for one in names)
            term = call.of_formula(formula, out, grad=given.conj() if is_complex else given, needs=needs)
            term = term[names.index(name)] if isinstance(term, tuple) else term
            if term is not None:
                terms.append(term.conj() if is_complex else term)
    return out, _summed(terms, out)


def _reduction(call: Call) -> tuple[Any, Any]:
    """Each element has one slope, its gradient where those of the results are 1: their products with the tangent are
    reduced."""
    (formula,), out, tangent = call.op.gradients.values(), call.result(), call.tangents["input"]
    slope = call.of_formula(formula, out, grad=ops.ones_like(out))
    if slope is None:
        return out, None
    product = slope.conj() * tangent if tangent.dispatch_key.dtype.is_complex else slope * tangent
    dim = call.values["dim"]
    return out, product.sum((dim,) if dim.__class__ is int else dim, call.values["keepdim"])


def _twice_reverse(call: Call) -> tuple[Any, Any]:
    names = list(call.tangents)
    values, moved = [call.values[name] for name in names], list(call.tangents.values())
    return twice_reverse(lambda given: call.result(**dict(zip(names, given))), values, moved)


def twice_reverse(function: Callable[[list], Any], values: list, tangents: list) -> tuple[Any, Any]:
    """The results of a function of tensors, and lists of them, and their tangents.

    The product of a vector u with the Jacobian from the left is linear in u; its derivative with respect to u, times
    the tangent, is the tangent of the result.
    """
    leaves: list[Tensor] = []
    pushed: list[Tensor] = []

    def moving(value: Any, tangent: Any) -> Any:
        if isinstance(tangent, list):
            return [*map(moving, value, tangent)]
        if tangent is None:
            return value
        leaves.append(_leaf(value))
        pushed.append(tangent)
        return leaves[-1]

    with _recording():
        out = function([*map(moving, values, tangents)])
        outs = out if isinstance(out, tuple) else (out,)
        used = [o for o in outs if isinstance(o, Tensor) and o.requires_grad]
        vectors = [_leaf(ops.zeros_like(_bare(o))) for o in used]
        products = recorded_gradients(used, leaves, vectors, True)
        linear = [(p, t) for p, t in zip(products, pushed) if p is not None and p.requires_grad]
        found: Sequence[Tensor | None] = [None] * len(vectors)
        if linear:
            found = grad([p for p, _ in linear], vectors, [t for _, t in linear], allow_unused=True)
    moved = dict(zip(map(id, used), found))
    result = tuple(moved.get(id(o)) for o in outs)
    bare = tuple(_bare(o) if isinstance(o, Tensor) else o for o in outs)
    return (bare, result) if isinstance(out, tuple) else (bare[0], result[0])


class _recording(no_recording):
    """Gradients on inside of a with-block, whoever watches what is recorded outside."""

    __slots__ = ("others",)

    def __enter__(self):
        super().__enter__()
        self.others = mode.recorder, mode.call_node
        mode.recording = mode.recorder = True
        mode.call_node = None

    def __exit__(self, *exception):
        mode.recorder, mode.call_node = self.others
        super().__exit__(*exception)


def _bare(tensor: Tensor) -> Tensor:
    return wrap(tensor.array, tensor.dispatch_key)


def _leaf(tensor: Tensor) -> Tensor:
    leaf = _bare(tensor)
    leaf.node = leaf_node(leaf)
    return leaf


_WAYS = {
    "formula": _formula, "linear": _linear, "elementwise": _elementwise, "reduction": _reduction,
    "twice reverse": _twice_reverse,
}  # fmt: skip


# -- kernels ----------------------------------------------------------------------------------------------------------
def entry(op: Op, dispatch_key: DispatchKey, results: Callable, geometry: Callable) -> tuple:
    """What stands in an op's table for dual tensors; see `LevelDevice.entry`."""
    if op.update:
        raise ForwardError(f"{op.name} changes tensors in place, as a step of an optimizer: call it outside of jvp")
    inner = dispatch_key_of(dispatch_key.device.inner, dispatch_key.dtype)  # type: ignore[attr-defined]
    if op.rule is not None and not op.rule.accepts(dispatch_key.dtype):
        return op.table[inner]  # which raises
    if op.view:
        return geometry(op, dispatch_key), *results(op, dispatch_key), False
    way = how(op)
    if way == "body" and not op.gradients:
        return None, op.body, None, False
    found = results(op, dispatch_key)
    run = _body if way == "body" else _kernel
    return run(op, dispatch_key, inner, _WAYS.get(way), found[0]), *found, False


def scope_of(arrays: Sequence[DualArray], depth: float) -> Scope:
    """The scope that a call of these arrays belongs to.

    Raises:
        OperandsChanged: all of it has ended.
        ForwardError: there are two.
    """
    if len(arrays) == 1 and arrays[0].scope.alive:
        return arrays[0].scope
    scopes = {array.scope for array in arrays if array.scope is not TIMELESS}
    alive = {scope for scope in scopes if scope.alive}
    if len(alive) > 1:
        raise ForwardError(
            "jvp: a derivative is taken through two forward differentiations, of which one ended before the other "
            "began: call the one inside of the other"
        )
    if scopes and not alive:
        raise OperandsChanged("the forward differentiation has ended")
    return next(iter(alive)) if alive else scope_at(depth)


def _parted(
    op: Op, level: LevelDevice, parameters: list[tuple[str, str]], arguments: tuple
) -> tuple[dict[str, Any], dict[str, Any], Scope]:
    """The primals of a kernel's arguments by name, the tangents of those that have some, and the scope.

    Args:
        parameters: (name, kind) of the arguments.
    """
    met: list[DualArray] = []

    def lifted(array: Any) -> DualArray:
        if array.__class__ is not DualArray or array.level is not level:
            where = getattr(array, "level", None) or base_of(level)
            if not set(depths(where)) <= set(depths(level)):
                raise ForwardError(f"{op.name}: tensors of different levels meet")
            return lift(array, dtypes.of_numpy(array.dtype), where, level)
        met.append(array)
        return array

    def moving(array: DualArray | None) -> Tensor | None:
        if array is None or array.tangent is None or not array.scope.alive:
            return None
        return wrap(array.tangent, below(level, array.primal.dtype))

    def still(array: DualArray | None) -> Tensor | None:
        return None if array is None else wrap(array.primal, below(level, array.primal.dtype))

    values: dict[str, Any] = {}
    tangents: dict[str, Any] = {}
    for (name, kind), value in zip(parameters, arguments, strict=False):
        if value is None or kind not in _ARRAYS:
            values[name] = value
        elif kind in _TENSORS:
            array = lifted(value)
            values[name] = still(array)
            if array.tangent is not None:
                tangents[name] = moving(array)
        else:
            several = [None if one is None else lifted(one) for one in value]
            values[name] = [*map(still, several)]
            if kind == "tensors":
                tangents[name] = [*map(moving, several)]
    scope = scope_of(met, level.depth)
    if not (scope.alive and carrying.forward):
        return values, {}, scope
    return values, {name: t for name, t in tangents.items() if _is_moved(t)}, scope


def _is_moved(tangent: Any) -> bool:
    return any(t is not None for t in tangent) if tangent.__class__ is list else tangent is not None


class Carrying(threading.local):
    """Whether the thread carries tangents along at all."""

    forward = True


carrying = Carrying()


def _kernel(op: Op, dispatch_key: DispatchKey, inner: DispatchKey, way: Callable | None, results: Any) -> Callable:
    """A kernel on dual arrays."""
    level: Any = dispatch_key.device
    keys = results if op.outputs else (results,)
    parameters = [(p.name, p.kind) for p in op.kernel_parameters]
    with_gradient = {name for names in op.gradients for name in names}.difference(op.zero_gradients)

    def kernel(*arguments):
        values, tangents, scope = _parted(op, level, parameters, arguments)
        moving = {name: t for name, t in tangents.items() if name in with_gradient}
        with no_recording():
            call = Call(op, inner, values, moving)
            found, pushed = way(call) if moving and way is not None else (call.result(), None)
            if not op.outputs:
                return dual(found, pushed, keys[0], tangents, scope)
            pushed = (None,) * len(found) if pushed is None else pushed
            return tuple(dual(f, t, key, tangents, scope) for f, t, key in zip(found, pushed, keys))

    def dual(found, tangent, key, given, scope):
        wanted = key.dtype
        if found.dispatch_key.dtype is not wanted:
            found = found.to(wanted)
        array = _lifted(found, level)
        if tangent is None or wanted.category < dtypes.FLOATING:
            return DualArray(array, None, level, scope)
        return DualArray(array, _lifted(_fitted(tangent, found, given), level), level, scope)

    return kernel


def _fitted(tangent: Tensor, found: Tensor, given: dict[str, Any]) -> Tensor:
    """A tangent as one of the result `found`, in memory of its own."""
    shape, wanted = tuple(found.array.shape), found.dispatch_key.dtype
    if tangent.dispatch_key.dtype is not wanted:
        if tangent.dispatch_key.dtype.is_complex and not wanted.is_complex:
            tangent = tangent.real
        tangent = tangent.to(wanted)
    if tuple(tangent.array.shape) != shape:
        return tangent.expand(shape).clone()
    several = [t for value in given.values() for t in (value if isinstance(value, list) else [value]) if t is not None]
    shared = tangent.version is found.version or any(tangent.version is t.version for t in several)
    return tangent.clone() if shared else tangent


def _lifted(tensor: Tensor, level: LevelDevice) -> Any:
    """The array of a tensor on the device below the level's."""
    where = tensor.dispatch_key.device
    return tensor.array if where is level.inner else lift(tensor.array, tensor.dispatch_key.dtype, where, level.inner)


def _body(op: Op, dispatch_key: DispatchKey, inner: DispatchKey, way: Any, results: Any) -> Callable:
    """The body of a composite as a kernel on dual arrays, which carries the tangents along."""
    level: Any = dispatch_key.device
    keys = results if op.outputs else (results,)
    parameters = [(p.name, p.kind) for p in op.kernel_parameters]

    def kernel(*arguments):
        values, tangents, scope = _parted(op, level, parameters, arguments)

        def dual(primal, tangent):
            if primal is None:
                return None
            array = DualArray(primal.array, None if tangent is None else tangent.array, level, scope)
            return wrap(array, dispatch_key_of(level, primal.dispatch_key.dtype))

        def argument(name, value):
            if isinstance(value, Tensor):
                return dual(value, tangents.get(name))
            if value.__class__ is list and any(isinstance(one, Tensor) for one in value):
                return [*map(dual, value, tangents.get(name) or [None] * len(value))]
            return value

        with no_recording():
            found = op.body(**{name: argument(name, value) for name, value in values.items()})
            return tuple(map(own, found, keys)) if op.outputs else own(found, keys[0])

    def own(tensor, key):
        tensor = tensor if tensor.dispatch_key.dtype is key.dtype else tensor.to(key.dtype)
        where = tensor.dispatch_key.device
        return tensor.array if where is level else lift(tensor.array, key.dtype, where, level)

    return kernel
