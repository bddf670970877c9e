"""What ops do that are given batched tensors: compute on all examples at once, by a rule, or on one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corefw import dtypes
from corefw.devices import DispatchKey
from corefw.dispatch.batching.arrays import (
    BatchedArray,
    BatchedDevice,
    BatchingError,
    HiddenElementsError,
    array_dims,
    base_of,
    depths,
    lift,
)
from corefw.dispatch.op import Op
from corefw.dispatch.registry import dispatch_key_of, registry
from corefw.graph.grad_mode import no_recording
from corefw.shapes import broadcast, same_shape
from corefw.tensor import Tensor, wrap


def is_elementwise(op: Op) -> bool:
    """Whether each element of the result is one of the operands' elements at its place."""
    kinds = {p.kind for p in op.parameters}
    shaped = op.primitive and op.shape in (broadcast, same_shape)
    return shaped and not kinds & {"dim", "dims", "given_dims", "tensors", "indices"}


def how(op: Op) -> str:
    """How `func.vmap` computes an op: by its "rule", by the arithmetic of a "view", by "alignment" of elements, by the
    "body" of a composite, by a "loop" over the examples, or that it is "refused".

    >>> how(registry.declared["matmul"]), how(registry.declared["exp"]), how(registry.declared["bucketize"])
    ('rule', 'alignment', 'body')
    """
    if op.batching is elementwise:
        return "alignment"
    if op.batching is not None:
        return "rule"
    if op.view:
        return "view"
    if op.update or (op.primitive and op.shape is None):
        return "refused"
    if is_elementwise(op):
        return "alignment"
    return "loop" if op.primitive else "body"


_SAID = {
    "rule": "all examples at once, by its rule",
    "view": "all examples at once, by arithmetic on strides",
    "alignment": "all examples in one call, aligned",
    "body": "by its body",
    "loop": "by a loop, one example after the other",
    "refused": "refused",
}


def said(op: Op) -> str:
    """What `func.vmap` does with an op, in words."""
    return _SAID[how(op)]


def aligned(*tensors: Tensor | None) -> list[Any]:
    """Tensors of which the examples broadcast: with dimensions of size 1 after the first where one has fewer."""
    most = max(array_dims(t.array) for t in tensors if t is not None)
    found = []
    for t in tensors:
        if t is not None and (missing := most - array_dims(t.array)):
            shape = t.array.shape
            t = t.reshape(shape[0], *(1,) * missing, *shape[1:])
        found.append(t)
    return found


def elementwise(call: Callable, examples: int, *values: Any) -> Any:
    """An op of which each element of the result comes of the operands' elements at its place: one call, in which the
    examples' dimensions are aligned."""
    places = [i for i, value in enumerate(values) if isinstance(value, Tensor)]
    changed = list(values)
    for i, tensor in zip(places, aligned(*(values[i] for i in places))):
        changed[i] = tensor
    return call(*changed)


def one_by_one(call: Callable, examples: int, *values: Any) -> Any:
    """An op on one example after the other."""

    def example(value: Any, i: int) -> Any:
        if isinstance(value, Tensor):
            return value[i if value.array.shape[0] > 1 else 0]
        return [example(one, i) for one in value] if value.__class__ is list else value

    if not examples:
        raise BatchingError("vmap: an op that is computed for one example after the other needs one at least")
    results = [call(*(example(value, i) for value in values)) for i in range(examples)]
    if isinstance(results[0], Tensor):
        return registry.declared["stack"].function(results)
    return tuple(registry.declared["stack"].function(list(parts)) for parts in zip(*results))


def _inner_call(op: Op, inner: DispatchKey) -> Callable:
    """The op as a function of a kernel's arguments, on the device below."""
    names = [p.name for p in op.kernel_parameters]
    first = next((p.name for p in op.parameters if p.kind == "dispatch_key"), None)
    keyword_only = {p.name for p in op.parameters if p.keyword_only}
    order = [p.name for p in op.parameters if p.name in names or p.name == first]

    def call(*values):
        given = dict(zip(names, values))
        if first is not None:
            given[first] = inner.with_dtype(dtypes.of_numpy(given["dtype"])) if "dtype" in given else inner
        positional = [given.pop(name) for name in order if name in given and name not in keyword_only]
        return op.function(*positional, **given)

    return call


def _kernel(op: Op, dispatch_key: DispatchKey, results: Any) -> Callable:
    """A kernel on batched arrays from a rule."""
    level = dispatch_key.device
    assert isinstance(level, BatchedDevice)
    inner = dispatch_key_of(level.inner, dispatch_key.dtype)
    call = _inner_call(op, inner)
    chosen = op.batching or (elementwise if is_elementwise(op) else one_by_one)
    kinds = [p.kind for p in op.kernel_parameters]
    keys = results if op.outputs else (results,)

    def inside(array):
        d = dtypes.of_numpy(array.dtype)
        where = _device_of(array, level)
        if where is not level:
            if not set(depths(where)) <= set(depths(level)):
                raise BatchingError(f"{op.name}: tensors of different batches meet")
            array = lift(array, d, where, level)
        return wrap(array.values, dispatch_key_of(level.inner, d))

    def returned(tensor, key):
        wanted = key.dtype
        if tensor.dispatch_key.dtype is not wanted:
            tensor = tensor.to(wanted)
        return BatchedArray(tensor.array, level)

    def kernel(*arguments):
        values = [
            value
            if value is None
            else inside(value)
            if kind in ("tensor", "optional", "index")
            else [None if array is None else inside(array) for array in value]
            if kind in ("tensors", "indices")
            else value
            for kind, value in zip(kinds, arguments, strict=False)
        ]
        with no_recording():
            found = chosen(call, level.examples, *values)
        if not op.outputs:
            return returned(found, keys[0])
        return tuple(map(returned, found, keys))

    return kernel


def _device_of(array: Any, level: BatchedDevice) -> Any:
    """The device of a raw array: that of its level, or the one on which all elements lie."""
    return getattr(array, "level", None) or base_of(level)


def data_dependent(name: str) -> HiddenElementsError:
    """The error of an op whose results may have other shapes for other examples."""
    return HiddenElementsError(
        f"vmap: the shape of what {name} gives depends on the data, so that it may differ between examples: use an op "
        "whose shape does not (where(), masked_fill()), or call the function for each example"
    )


def refused(op: Op) -> BatchingError:
    """The error of an op that has no meaning for many examples at once."""
    if op.update:
        return BatchingError(f"vmap: {op.name} changes tensors in place, as a step of an optimizer: call it outside")
    return data_dependent(op.name)


def entry(op: Op, dispatch_key: DispatchKey, results: Callable, geometry: Callable, body: Callable) -> tuple:
    """What stands in an op's table for batched tensors; the three functions are those of other devices: dispatch keys
    of results, kernels of views, bodies as kernels."""
    by = how(op)
    if by == "refused":
        raise refused(op)
    if op.rule is not None and not op.rule.accepts(dispatch_key.dtype):
        inner = dispatch_key_of(dispatch_key.device.inner, dispatch_key.dtype)  # type: ignore[attr-defined]
        return op.table[inner]  # which raises
    if by == "view":
        return geometry(op, dispatch_key), *results(op, dispatch_key), False
    if by == "body":
        if not op.gradients:
            return None, op.body, None, False
        return body(op, dispatch_key), *results(op, dispatch_key), False
    found = results(op, dispatch_key)
    return _kernel(op, dispatch_key, found[0]), *found, False
