"""Pooling: relu after a maximum of windows instead of before, where there are fewer elements.

The maximum of what relu leaves is relu of the maximum. Where that is may be another place if no element of a window is
positive, but then no gradient arrives there: what relu's gradient is 0 for, of the window or of each element, is the
same.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace

from corefw.compiling.passes.facts import Facts
from corefw.dispatch.plan import Call, Cell, Plan

_POOLINGS = ("max_pool", "adaptive_max_pool")


def pooling(plan: Plan) -> Plan:
    """The plan with relu, and its gradient, on the other side of maxima of windows where nobody sees the difference."""
    pools = [(i, call) for i, call in enumerate(plan.calls) if call.op.name in _POOLINGS]
    if not pools:
        return plan
    facts = Facts.of(plan)
    calls: dict[int, list[Call]] = {}
    for i, call in pools:
        if (first := facts.makers.get(call.arguments[0])) is not None:
            calls.update(_exchanged(plan.calls, facts, first, i) or {})
    return replace(plan, calls=[new for i, call in enumerate(plan.calls) for new in calls.get(i, [call])])


def _exchanged(calls: list[Call], facts: Facts, first: int, second: int) -> dict[int, list[Call]] | None:
    """What takes the place of relu, call number `first`, of the pooling of its result, and of their gradients."""
    relu, pool = calls[first], calls[second]
    if relu.op.name != "relu" or relu.out is not None:
        return None
    (input,), (between,), (values, indices) = relu.arguments, relu.results, pool.results
    gradients = {i: facts.uses.get(calls[i].results[0], []) for i in facts.uses.get(indices, ()) if calls[i].results}
    masks = [i for i in facts.uses[between] if i != second]
    own = [between, indices, *(calls[i].results[0] for i in gradients)]
    if (
        not all(map(facts.is_own, own))
        or facts.is_written(values)
        or not facts.are_unchanged((input,), first, second, ())
        or [*gradients.values()] != [[i] for i in masks]
        or not all(_is_gradient(calls[i], calls[j], between, pool) for i, j in zip(gradients, masks))
    ):
        return None
    largest = copy(values)
    made = {
        first: [],
        second: [
            replace(pool, arguments=(input, *pool.arguments[1:]), results=(largest, indices)),
            replace(relu, arguments=(largest,), results=(values,)),
        ],
    }
    for i, j in zip(gradients, masks):
        masked, result = copy(values), calls[j].results[0]
        mask = replace(calls[j], arguments=(calls[i].arguments[0], values), results=(masked,))
        made[i] = [mask, replace(calls[i], arguments=(masked, *calls[i].arguments[1:]), results=(result,))]
        made[j] = []
    return made


def _is_gradient(spread: Call, mask: Call, between: Cell, pool: Call) -> bool:
    """Whether two calls are the gradients of a pooling and of the relu before it, in arrays that lie as those do."""
    if spread.op.name != "max_pool_backward" or mask.op.name != "relu_backward" or mask.out is not None:
        return False
    gradient, values, (result,) = spread.arguments[0], pool.results[0], spread.results
    return (
        mask.arguments == (result, between)
        and (gradient.strides, gradient.dtype) == (values.strides, values.dtype)
        and mask.results[0].strides == result.strides
    )
