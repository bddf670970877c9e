"""Biases: the gradient of a linear layer's bias is summed apart from that of its weight, where that can be done while
the elements are made."""

from __future__ import annotations

from dataclasses import replace

from corefw.compiling.elementwise import reading
from corefw.compiling.passes.writing import written
from corefw.dispatch.plan import Call, Plan
from corefw.dispatch.registry import ops, registry
from corefw.tensor import Tensor


def biases(plan: Plan) -> Plan:
    """The plan with a product and a sum, for `fusion` to join, in the place of what computes both gradients of a layer
    from the result of an elementwise call."""
    made = {cell: call for call in plan.calls for cell in call.results}
    calls: list[Call] = []
    for call in plan.calls:
        maker = made.get(call.arguments[0]) if call.op.name == "linear_gradients" else None
        calls += [call] if maker is None or not _is_fusible(maker) else _parted(call)
    return replace(plan, calls=calls)


def _is_fusible(call: Call) -> bool:
    backend = registry.backends.get(call.who)
    found = reading(call)
    return backend is not None and backend.fuse is not None and found is not None and found.dim is None


def _parted(call: Call) -> list[Call]:
    """The product and the sum."""

    def gradients(gradient: Tensor, input: Tensor) -> list[Tensor]:
        rows = [tensor.reshape(-1, tensor.shape[-1]) for tensor in (gradient, input)]
        return [ops.adjoint_matmul(*rows), gradient.sum(tuple(range(gradient.ndim - 1)))]

    calls, made = written(gradients, call.arguments, call)
    if [cell.strides for cell in made] != [cell.strides for cell in call.results]:
        return [call]
    results = dict(zip(made, call.results))
    for new in calls:
        new.results = tuple(results.get(cell, cell) for cell in new.results)
    return calls
