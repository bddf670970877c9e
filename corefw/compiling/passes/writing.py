"""New calls of a plan, written down from a function of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from corefw.compiling.tape import Tape
from corefw.dispatch.plan import Call, Cell
from corefw.graph.grad_mode import no_recording
from corefw.tensor import Tensor, wrap


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
