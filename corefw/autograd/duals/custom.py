"""Functions with gradients of their own, called with dual tensors: their `jvp` gives the tangents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corefw.autograd.duals.arrays import DualArray, below
from corefw.autograd.duals.calls import carrying, scope_of, twice_reverse
from corefw.autograd.function import Function, FunctionCtx
from corefw.dispatch.batching.arrays import LevelDevice
from corefw.dispatch.declare import ops
from corefw.dispatch.registry import dispatch_key_of
from corefw.errors import GradientError, ShapeError
from corefw.graph.grad_mode import no_recording
from corefw.tensor import Tensor, wrap


def apply(level: LevelDevice, function: type[Function], ctx: FunctionCtx, args: tuple, run: Callable) -> Any:
    """The outputs of a function, dual tensors; what it notes on `ctx` is noted of the dual tensors.

    Args:
        level: the innermost device of the arguments.
        run: from arguments to outputs: `forward`, and `setup_context`.
    """
    duals = [isinstance(a, Tensor) and a.dispatch_key.device is level for a in args]
    scope = scope_of([a.array for a, dual in zip(args, duals) if dual], level.depth)
    primals = tuple(_part(level, a, a.array.primal) if dual else a for a, dual in zip(args, duals))
    tangents = [
        _part(level, a, a.array.tangent) if dual and carrying.forward and a.array.tangent is not None else None
        for a, dual in zip(args, duals)
    ]
    with no_recording():
        output = run(primals)
        raw = output if isinstance(output, tuple) else (output,)
        pushed: tuple = (None,) * len(raw)
        if any(t is not None for t in tangents):
            pushed = _pushed(function, ctx, primals, tangents, raw)
    before = {id(primal): arg for primal, arg, dual in zip(primals, args, duals) if dual}
    after: dict[int, Any] = {}
    for one, tangent in zip(raw, pushed):
        if not isinstance(one, Tensor):
            continue
        array = DualArray(one.array, None if tangent is None else tangent.array, level, scope)
        if id(one) in before and any(one is dirty for dirty in ctx.dirty_tensors):
            after[id(one)] = before[id(one)]
            before[id(one)].array.tangent = array.tangent
        else:
            after[id(one)] = wrap(array, dispatch_key_of(level, one.dispatch_key.dtype))
    ctx.to_save, ctx.to_save_forward = (_known(noted, before, after) for noted in (ctx.to_save, ctx.to_save_forward))
    ctx.dirty_tensors = _known(ctx.dirty_tensors, after, before)
    ctx.non_differentiable = _known(ctx.non_differentiable, after, before)
    found = tuple(after.get(id(one), one) for one in raw)
    return found if isinstance(output, tuple) else found[0]


def _known(noted: tuple, first: dict[int, Any], second: dict[int, Any]) -> tuple:
    """The dual tensors that stand for the tensors which were noted."""
    return tuple(first.get(id(t), second.get(id(t), t)) for t in noted)


def _part(level: LevelDevice, tensor: Tensor, array: Any) -> Tensor:
    return wrap(array, below(level, tensor.array.dtype))


def _pushed(function: type[Function], ctx: FunctionCtx, primals: tuple, tangents: list, raw: tuple) -> tuple:
    """The tangents of the outputs."""
    if function.jvp is Function.jvp:
        if function.backward is Function.backward and function.vjp is Function.vjp:
            return function.jvp(ctx, *tangents)  # which raises
        _, found = twice_reverse(lambda given: _as_tuple(function.apply(*given)), list(primals), tangents)
        return found
    given = [
        ops.zeros_like(p) if t is None and isinstance(p, Tensor) and ctx.materialize_grads else t
        for p, t in zip(primals, tangents)
    ]
    saved, ctx.to_save = ctx.to_save, ctx.to_save_forward or ctx.to_save
    try:
        found = _as_tuple(function.jvp(ctx, *given))
    finally:
        ctx.to_save = saved
    if len(found) != len(raw):
        raise GradientError(
            f"{function.__name__}.jvp returned {len(found)} tangents, expected one for each of {len(raw)} outputs"
        )
    for one, tangent in zip(raw, found):
        if isinstance(tangent, Tensor) and isinstance(one, Tensor) and tangent.array.shape != one.array.shape:
            raise ShapeError(
                f"{function.__name__}.jvp returned a tangent of shape {list(tangent.array.shape)} for an output of "
                f"shape {list(one.array.shape)}"
            )
    return tuple(
        t.to(o.dispatch_key.dtype) if isinstance(t, Tensor) and isinstance(o, Tensor) else t for o, t in zip(raw, found)
    )


def _as_tuple(value: Any) -> tuple:
    return value if isinstance(value, tuple) else (value,)
