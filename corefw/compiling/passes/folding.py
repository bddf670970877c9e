"""Folding: a scale and a shift per channel become part of the convolution or linear map before them.

In evaluation a batch norm is such a pair. The new weight and bias are calls of the plan, for `hoisting` to make once.
Results differ within the rounding of a convolution, since what is scaled is rounded elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from corefw.compiling.passes.hoisting import Steady
from corefw.compiling.tape import Tape
from corefw.dispatch.plan import Call, Cell, Plan
from corefw.graph.grad_mode import no_recording
from corefw.tensor import Tensor, wrap

#: the ops that are linear in a weight whose first dimension is that of the results' channels, with their results'
#: dimensions; None for any
FOLDABLE = {"convolution": None, "linear": 2}


def folding(plan: Plan) -> Plan:
    """The plan with one call in the place of two, where both have weights that stay and nobody else sees the first."""
    if not any(call.op.name == "channel_affine" for call in plan.calls):
        return plan
    steady = Steady(plan)
    uses = Counter(cell for call in plan.calls for cell in call.cells())
    makers = {cell: i for i, call in enumerate(plan.calls) for cell in call.results}
    shown = {*plan.returned, *(cell.memory for cell in makers if cell.owner is not None)}
    calls: list[list[Call]] = [[call] for call in plan.calls]
    for i, call in enumerate(plan.calls):
        if call.op.name != "channel_affine" or not call.results or call.arguments[0] not in makers:
            continue
        input, scale, shift = call.arguments
        first = makers[input]
        is_own = uses[input] == 1 and input not in shown
        if not is_own or any(any(between.changed()) for between in plan.calls[first:i]):
            continue
        if all(cell in steady for cell in (scale, shift)) and _is_foldable(plan.calls[first], call, steady):
            calls[first], calls[i] = [], _folded(plan.calls[first], call)
    return replace(plan, calls=[call for group in calls for call in group])


def _named(call: Call) -> dict[str, Any]:
    """The arguments by name."""
    op: Any = call.op
    return dict(zip((p.name for p in op.kernel_parameters), call.arguments, strict=False))


def _weights(call: Call) -> dict[str, Cell]:
    """The arguments of a linear op that its result is linear in, beside the input, by name."""
    return {name: cell for name, cell in _named(call).items() if name in ("weight", "bias") and cell is not None}


def _is_foldable(linear: Call, affine: Call, steady: Steady) -> bool:
    name, result, folded = linear.op.name, linear.results[0], affine.results[0]
    if name not in FOLDABLE or FOLDABLE[name] not in (None, len(result.shape)):
        return False
    named = _named(linear)
    if "bias" not in named or named.get("transposed"):
        return False
    weights = [*_weights(linear).values()]
    same = {cell.dtype for cell in (*weights, *affine.cells(), folded)} == {result.dtype}
    return same and folded.strides == result.strides and all(cell in steady for cell in weights)


def _folded(linear: Call, affine: Call) -> list[Call]:
    """The calls that make the new weight and bias, and the one that uses them."""
    _, scale, shift = affine.arguments
    given = [*_weights(linear).values(), scale, shift]

    def fold(weight: Tensor, *rest: Tensor) -> list[Tensor]:
        scale, shift = rest[-2:]
        new = weight * scale.reshape(-1, *[1] * (weight.ndim - 1))
        return [new, rest[0] * scale + shift] if len(rest) == 3 else [new]

    calls, made = written(fold, given, affine)
    new = dict(zip(("weight", "bias"), [*made, shift]))
    arguments = tuple(new.get(name, argument) for name, argument in _named(linear).items())
    return [*calls, replace(linear, arguments=arguments, results=affine.results, where=affine.where)]


def written(
    function: Callable[..., Sequence[Tensor]], given: Sequence[Cell], call: Call
) -> tuple[list[Call], list[Cell]]:
    """The calls of a function of tensors, applied to cells in the place of `call`, and the cells of what it returns."""
    key = call.dispatch_key
    tensors = [wrap(key.runtime.empty(cell.shape, key.dtype, key.device.index), key) for cell in given]
    with Tape() as tape, no_recording():
        places = [tape.given(tensor.array, cell.name) for tensor, cell in zip(tensors, given)]
        results = [tape.cell(tensor.array) for tensor in function(*tensors)]
        calls = tape.finished().calls
    for made in calls:
        made.where = call.where
        for place, cell in zip(places, given):
            made.replace(place, cell)
    return calls, results
