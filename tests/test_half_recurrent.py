"""Recurrences of half types at every level of the C backend that this machine has, and by emulated tiles: states and
gradients of gates enter products rounded, as they are returned; all else is float32, rounded once."""

import numpy as np
import pytest

import corefw as torch
from corefw.dispatch.registry import registry
from tests.halves import HALVES, LEVELS, f64, random

pytest.importorskip("tests.compiled")
from tests.scratch import extra

#: gates, states and other arguments of each recurrence
KINDS = {
    "rnn_tanh": ("rnn_sequence", 1, 1, ("tanh",)),
    "rnn_relu": ("rnn_sequence", 1, 1, ("relu",)),
    "lstm": ("lstm_sequence", 4, 2, ()),
    "gru": ("gru_sequence", 3, 1, ()),
}
BATCHES = [(1, 1, 1), (5, 3, 3, 1), (17, 9), (6,) * 8]


def arguments(kind, dtype, hidden, batches, reverse=False):
    _, gates, states, rest = KINDS[kind]
    input = random(dtype, sum(batches), gates * hidden)
    weight = (random("float32", gates * hidden, hidden) / hidden**0.5).to(input.dtype)
    first = [random(dtype, batches[0], hidden) / 2 for _ in range(states)]
    return input, *first, weight, batches, reverse, *rest


def run(kind, given, gradient, found=None):
    """What a recurrence gives, and its gradients for the first result; at what `found` has saved, if it is given."""
    op, _, states, rest = KINDS[kind]
    forward, backward = (registry.declared[name].function for name in (op, op + "_backward"))
    _, *first, weight, batches, reverse = given[: 4 + states]
    results = forward(*given)
    saved = [results[0], *results[1 + states :]] if found is None else [found[0], *found[1 + states : len(results)]]
    return [*results, *backward(*first, weight, *saved, batches, reverse, *rest, gradient)]


def wide(values):
    return [value.double() if isinstance(value, torch.Tensor) else value for value in values]


def both(kind, level, given, gradient):
    """The same of a level, and of float64 by the reference, whose gradients are those at what the level has saved."""
    with torch.backend(level):
        found = run(kind, given, gradient)
    with torch.backend("numpy"):
        return found, run(kind, wide(given), gradient.double(), wide(found))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", LEVELS)
def test_one_step_rounds_factors_and_results_alone(level, dtype, kind):
    states, half = KINDS[kind][2], HALVES[dtype]
    for hidden, batch in ((1, 1), (5, 3), (33, 2), (70, 9), (64, 40), (129, 4)):
        given = arguments(kind, dtype, hidden, (batch,))
        _, state, *_, weight = given[: 2 + states]
        found, exact = both(kind, level, given, random(dtype, batch, hidden))
        first = len(found) - 2 - states - (kind == "gru")  # of the gradients: that of the input
        d = np.abs(f64(exact[first])).max(1)  # for GRU what meets the weight differs in a third, but is no larger
        moduli = [0] * len(found)  # of what is added up of rounded factors
        moduli[first + 1] = d[:, None] * np.abs(f64(weight)).sum(0)
        moduli[first + 1 + states] = d @ np.abs(f64(state))
        if kind == "gru":
            moduli[-1] = d.sum()
        for number, (a, b, added) in enumerate(zip(found, exact, moduli, strict=True)):
            assert a.dtype is given[0].dtype
            excess = np.abs(f64(a) - f64(b)) - half * (1.01 * np.abs(f64(b)) + added) - 2e-6
            assert (excess <= 0).all(), (hidden, batch, number, excess.max())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", LEVELS)
def test_sequences_follow_float64(level, dtype, kind):
    for hidden, batches in zip((70, 37, 96, 5), BATCHES):
        for reverse in (False, True):
            given = arguments(kind, dtype, hidden, batches, reverse)
            gradient = random(dtype, sum(batches), hidden)
            for number, (a, b) in enumerate(zip(*both(kind, level, given, gradient), strict=True)):
                scale = max(1, np.abs(f64(b)).max())
                error = np.abs(f64(a) - f64(b)).max()
                assert error <= 4 * HALVES[dtype] * scale, (hidden, batches, reverse, number)


@pytest.mark.parametrize("level", LEVELS)
def test_what_is_kept_from_step_to_step_is_not_rounded(level):
    """Steps of a fraction of bfloat16's last place add up in the cell of an LSTM and in the state of a GRU."""
    steps, small, update = 64, 2.0**-10, 6.9375
    of_lstm = torch.tensor([[20.0, 20.0, small, 20.0]] * steps).bfloat16()
    of_gru = torch.tensor([[0.0, update, -20.0]] * steps).bfloat16()
    one, batches = torch.ones(1, 1).bfloat16(), (1,) * steps
    with torch.backend(level):
        cell = registry.declared["lstm_sequence"].function(
            of_lstm, one, one, torch.zeros(4, 1).bfloat16(), batches, False
        )[2]
        state = registry.declared["gru_sequence"].function(of_gru, one, torch.zeros(3, 1).bfloat16(), batches, False)[1]
    assert cell.item() == 1 + steps * small
    assert abs(state.item() - (2 * (1 + np.exp(-update)) ** -steps - 1)) < 2**-8


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("level", LEVELS)
def test_bits_do_not_depend_on_the_number_of_threads(level, kind, same_on_threads):
    given, gradient = arguments(kind, "bfloat16", 130, (33, 33, 20)), random("bfloat16", 86, 130)
    with torch.backend(level):
        same_on_threads(lambda: run(kind, given, gradient))


@pytest.mark.parametrize("level", LEVELS)
def test_infinite_states_stay_infinite(level):
    input, first, weight = ((torch.ones(*shape) / 40).half() for shape in ((6, 40), (2, 40), (40, 40)))
    first[1, 3] = float("inf")
    with torch.backend(level):
        output, last = registry.declared["rnn_sequence"].function(input, first, weight, (2, 2, 2), False, "relu")
    assert torch.isfinite(output[::2]).all() and torch.isinf(output[1::2]).all() and torch.isinf(last[1]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_no_array_is_converted_as_a_whole(kind):
    """The memory of a call is that of its results, of a packed weight, and of what a step needs."""
    hidden, batches = 128, (32,) * 64
    given, gradient = arguments(kind, "bfloat16", hidden, batches), random("bfloat16", 2048, hidden)

    op, gates, states, rest = KINDS[kind]
    forward = registry.declared[op].function
    backward = registry.declared[op + "_backward"].function
    found = forward(*given)
    saved = [found[0], *found[1 + states :]]
    packed = 4 * gates * hidden * hidden
    assert extra(forward, *given) < packed + (1 << 18)
    states_before, hidden_part = gradient.nbytes, 0 if kind != "gru" else 3 * gradient.nbytes
    taken = extra(backward, *given[1 : 2 + states], *saved, batches, False, *rest, gradient)
    assert taken < packed + states_before + hidden_part + (3 << 19)  # blocks of the last product
