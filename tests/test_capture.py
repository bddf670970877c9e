"""Recorded programs: what is written down, changes in place, and what prints."""

import threading

import numpy as np
import pytest

import corefw
from corefw import nn
from corefw.autograd.grad_mode import no_grad
from corefw.capture.record import record
from corefw.dispatch.registry import registry


def recorded(function, *inputs, whole=lambda op: True, states=()):
    """The program of a function of tensors."""
    named = {f"s{i}": tensor for i, tensor in enumerate(states)}
    return record(function, *inputs, names=["x"], states=named, whole=whole)


def replayed(program, *inputs):
    """What a program computes, line by line through the tables."""
    known = dict(zip(program.inputs, (tensor.array for tensor in inputs)))

    def array(argument):
        if argument.__class__ is list:
            return [array(item) for item in argument]
        if argument.__class__.__name__ != "Value":
            return argument
        return known.get(argument, argument.array) if argument.line is None else known[argument]

    for line in program.lines:
        result = line.op.table[line.dispatch_key][0](*map(array, line.arguments))
        for value, found in zip(line.results, result if line.op.outputs else [result]):
            known[value] = np.asarray(found)
    return known[program.outputs[0]]


def names(program):
    return [line.op.name for line in program.lines]


def test_prints_one_line_per_op():
    layer = nn.Linear(3, 4)
    x = corefw.ones(2, 3)
    program = recorded(lambda x: layer(x).softmax(-1).t(), x, states=[layer.weight, layer.bias])
    assert str(program).splitlines() == [
        "%0 = input x: float32[2, 3]",
        "%1 = state s0: float32[4, 3]",
        "%2 = state s1: float32[4]",
        "%3 = linear(%0, %1, %2): float32[2, 4]",
        "%4 = softmax(%3, dim=1): float32[2, 4]",
        "%5 = t(%4): float32[4, 2]",
        "return %5",
    ]
    assert "test_capture.py" in program.lines[0].where


def _writes_to_views(x):
    y = x * 2
    row = y[0]
    y[:, 1:] += 1
    y.view(-1)[0] = 7.0
    row.mul_(3)
    y[1] = row[0]
    return y + row


def _writes_through_parts(x):
    y = x.clone()
    first, second = y.split(1)
    second.copy_(first)
    first.zero_()
    return y


def _casts(x):
    y = x.int() + x + 1
    y += corefw.ones(2, 3, dtype=corefw.float64)
    return y + x.sum().double()


def _fills_a_slice(x):
    y = corefw.zeros(3, 3)
    y[:2] = x
    y.t()[0].fill_(4)
    return y


@pytest.mark.parametrize("function", [_writes_to_views, _writes_through_parts, _casts, _fills_a_slice])
@pytest.mark.parametrize("parts", [False, True], ids=["whole", "bodies"])
def test_replays_for_other_inputs(function, parts):
    first, other = corefw.arange(6.0).reshape(2, 3), corefw.arange(6.0).reshape(2, 3) * -1.5
    program = recorded(function, first.clone(), whole=lambda op: not parts)
    program.prune()
    with no_grad():
        assert np.array_equal(replayed(program, other), function(other.clone()).numpy())


def test_bodies_are_opened_where_wanted():
    x = corefw.ones(2, 4)
    assert names(recorded(lambda x: x.softmax(-1), x)) == ["softmax"]
    parts = recorded(lambda x: x.softmax(-1), x, whole=lambda op: False)
    assert "softmax" not in names(parts) and "exp" in names(parts)
    assert all(line.op.primitive or line.op.view for line in parts.lines)


def test_states_that_change():
    layer = nn.BatchNorm1d(3)
    x = corefw.arange(12.0).reshape(4, 3)
    program = recorded(layer, x, states=[layer.running_mean, layer.running_var])
    assert [value.name for value in program.changed] == ["s0", "s1"]
    mean = next(value for value in program.changed if value.name == "s0")
    assert np.array_equal(mean.array, np.zeros(3)), "what it was before"
    lines = len(program.lines)
    program.changed.clear()
    program.prune()
    assert len(program.lines) < lines


def test_nothing_stays_behind():
    x = corefw.ones(2)
    runtimes = [runtime for _, runtime in registry.runtimes.values()]
    before, modes = [dict(vars(runtime)) for runtime in runtimes], [*registry.modes]
    with pytest.raises(ZeroDivisionError):
        recorded(lambda x: 1 / 0, x)
    assert [dict(vars(runtime)) for runtime in runtimes] == before and registry.modes == modes


def test_other_threads_are_not_recorded():
    def function(x):
        thread = threading.Thread(target=lambda: x.exp())
        thread.start()
        thread.join()
        return x + 1

    assert names(recorded(function, corefw.ones(2))) == ["add"]
