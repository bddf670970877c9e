"""Steps of recurrences over packed sequences, in the tensor language."""

from __future__ import annotations

from itertools import pairwise

from corefw.dispatch.declare import ops
from corefw.shapes import packed_steps


def with_first_rows(first, state):
    """`state` with its first rows replaced."""
    rows = first.shape[0]
    return first if rows == state.shape[0] else ops.cat([first, state[rows:]])


def in_packed_order(parts, reverse: bool):
    """The rows of all steps, given in the order of their computation, in packed order."""
    return ops.cat(parts[::-1] if reverse else parts)


def previous_states(state, rows, batch_sizes, reverse: bool):
    """For every packed row the state from which it was computed: that of the step before, or the first `state`."""
    steps = packed_steps(batch_sizes, reverse)
    parts = [state[: steps[0][2]]]
    for (start, _, before), (_, _, size) in pairwise(steps):
        part = rows[start : start + min(before, size)]
        parts.append(part if size <= before else ops.cat([part, state[before:size]]))
    return in_packed_order(parts, reverse)


def gate_columns(gates, number: int):
    """The columns of each gate."""
    size = gates.size(1) // number
    return [gates.narrow(1, i * size, size) for i in range(number)]


def plus(first, second):
    """The sum, where a gradient that is None counts as zero."""
    return second if first is None else first if second is None else first + second


def step_rows(gradient, start: int, stop: int):
    return None if gradient is None else gradient[start:stop]
