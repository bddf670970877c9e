"""Recurrences over packed sequences, of which recurrent networks are made.

A recurrence takes its input's part of the gates already computed, by one product for all steps. Sequences are packed:
row after row the first step of all sequences, the longest first, then the second step of those that have one, and so
on; ``batch_sizes`` says how many each step has. Equally long sequences are packed by flattening (steps, batch).
"""

from __future__ import annotations

from corefw.declarations._shared.steps import (
    gate_columns,
    in_packed_order,
    plus,
    previous_states,
    step_rows,
    with_first_rows,
)
from corefw.dispatch.declare import composite, ops
from corefw.dispatch.rules import DtypeRule, real_floats, same
from corefw.errors import ShapeError
from corefw.shapes import packed_steps
from corefw.tensor import Tensor


def results(number: int) -> DtypeRule:
    """The dtype rule of a recurrence with so many results."""
    return real_floats.giving(*[same] * number)


# -- shapes -----------------------------------------------------------------------------------------------------------
def _check(name: str, input, hx, weight_hh, batch_sizes, gates: int) -> None:
    """Refuse shapes that do not fit a recurrence with so many gates."""
    if len(input) != 2 or len(hx) != 2:
        raise ShapeError(f"{name}: input and hx must have 2 dimensions, got shapes {list(input)} and {list(hx)}")
    hidden = hx[1]
    if weight_hh != (gates * hidden, hidden):
        raise ShapeError(
            f"{name}: weight_hh must have shape {[gates * hidden, hidden]} for hidden size {hidden}, got "
            f"{list(weight_hh)}"
        )
    if input[1] != gates * hidden:
        raise ShapeError(f"{name}: input must have {gates * hidden} columns for hidden size {hidden}, got {input[1]}")
    if not batch_sizes or list(batch_sizes) != sorted(batch_sizes, reverse=True):
        raise ShapeError(f"{name}: batch_sizes must not be empty and not grow, got {list(batch_sizes)}")
    if sum(batch_sizes) != input[0]:
        raise ShapeError(f"{name}: batch_sizes sum up to {sum(batch_sizes)}, the input has {input[0]} rows")
    if hx[0] != batch_sizes[0]:
        raise ShapeError(f"{name}: Expected hidden size {(batch_sizes[0], hidden)}, got {list(hx)}")


def _check_gradients(name: str, *pairs) -> None:
    """Refuse gradients, or saved results, that do not have the shapes of what they belong to."""
    for given, wanted in pairs:
        if given is not None and tuple(given) != tuple(wanted):
            raise ShapeError(f"{name}: expected shape {list(wanted)}, got {list(given)}")


def _rnn_shape(input, hx, weight_hh, batch_sizes, reverse, nonlinearity):
    _check("rnn_sequence", input, hx, weight_hh, batch_sizes, 1)
    return input, hx


def _lstm_shape(input, hx, cx, weight_hh, batch_sizes, reverse):
    _check("lstm_sequence", input, hx, weight_hh, batch_sizes, 4)
    if cx != hx:
        raise ShapeError(f"lstm_sequence: hx and cx must have the same shape, got {list(hx)} and {list(cx)}")
    rows = (input[0], hx[1])
    return rows, hx, cx, input, rows


def _gru_shape(input, hx, weight_hh, batch_sizes, reverse, bias_hh=None):
    _check("gru_sequence", input, hx, weight_hh, batch_sizes, 3)
    if bias_hh is not None and bias_hh != weight_hh[:1]:
        raise ShapeError(f"gru_sequence: bias_hh must have shape {list(weight_hh[:1])}, got {list(bias_hh)}")
    return (input[0], hx[1]), hx, (input[0], 4 * hx[1])


# -- simple recurrence ------------------------------------------------------------------------------------------------
@composite(dtype=results(2), shape=_rnn_shape, outputs=("output", "hn"), public="")
def rnn_sequence(input, hx, weight_hh, batch_sizes: tuple[int, ...], reverse: bool, nonlinearity: str):
    """The recurrence ``h = f(x + weight_hh @ h)`` (Elman 1990) with f = tanh or relu.

    Args:
        input: (rows, hidden size), packed.
        hx: (batch, hidden size), the first states.
        weight_hh: (hidden size, hidden size).
        batch_sizes: the number of rows of each step.
        reverse: whether each sequence is read from its end.
        nonlinearity: "tanh" or "relu".

    Returns:
        output: (rows, hidden size), the state at every step.
        hn: the last states.
    """
    function = getattr(Tensor, nonlinearity)
    outputs = []
    for start, stop, size in packed_steps(batch_sizes, reverse):
        outputs.append(function(input[start:stop] + hx[:size] @ weight_hh.t()))
        hx = with_first_rows(outputs[-1], hx)
    return in_packed_order(outputs, reverse), hx


@rnn_sequence.gradient("input", "hx", "weight_hh")
def rnn_sequence_vjp(grad_output, grad_hn, output, hx, weight_hh, batch_sizes, reverse, nonlinearity):
    return ops.rnn_sequence_backward(hx, weight_hh, output, batch_sizes, reverse, nonlinearity, grad_output, grad_hn)


def _rnn_backward_shape(hx, weight_hh, output, batch_sizes, reverse, nonlinearity, grad_output=None, grad_hn=None):
    _check("rnn_sequence_backward", output, hx, weight_hh, batch_sizes, 1)
    _check_gradients("rnn_sequence_backward", (grad_output, output), (grad_hn, hx))
    return output, hx, weight_hh


@composite(dtype=results(3), shape=_rnn_backward_shape, outputs=("input", "hx", "weight_hh"), public="")
def rnn_sequence_backward(
    hx, weight_hh, output, batch_sizes: tuple[int, ...], reverse: bool, nonlinearity: str, grad_output=None,
    grad_hn=None,
):  # fmt: skip
    """The gradients of `rnn_sequence` for its input, first state and weight."""
    slopes = 1 - output * output if nonlinearity == "tanh" else (output > 0).to(output.dtype)
    state = ops.zeros_like(hx) if grad_hn is None else grad_hn
    parts = []
    for start, stop, size in reversed(packed_steps(batch_sizes, reverse)):
        parts.append(plus(step_rows(grad_output, start, stop), state[:size]) * slopes[start:stop])
        state = with_first_rows(parts[-1] @ weight_hh, state)
    grad_input = in_packed_order(parts, not reverse)
    return grad_input, state, grad_input.t() @ previous_states(hx, output, batch_sizes, reverse)


# -- long short-term memory -------------------------------------------------------------------------------------------
@composite(dtype=results(5), shape=_lstm_shape, outputs=("output", "hn", "cn", "gates", "cells"), public="")
def lstm_sequence(input, hx, cx, weight_hh, batch_sizes: tuple[int, ...], reverse: bool):
    """Long short-term memory (Hochreiter & Schmidhuber 1997, with forget gates by Gers et al. 2000).

    With (i, f, g, o) the four parts of ``x + weight_hh @ h`` after sigmoid, sigmoid, tanh and sigmoid:
    ``c = f * c + i * g`` and ``h = o * tanh(c)``.

    Args:
        input: (rows, 4 hidden size), packed.
        hx, cx: (batch, hidden size), the first states.
        weight_hh: (4 hidden size, hidden size).
        batch_sizes: the number of rows of each step.
        reverse: whether each sequence is read from its end.

    Returns:
        output: (rows, hidden size), the state h at every step.
        hn, cn: the last states.
        gates, cells: (i, f, g, o) and c at every step, for the gradient.
    """
    outputs, gates, cells = [], [], []
    for start, stop, size in packed_steps(batch_sizes, reverse):
        i, f, g, o = gate_columns(input[start:stop] + hx[:size] @ weight_hh.t(), 4)
        i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
        gates.append(ops.cat([i, f, g, o], 1))
        cells.append(f * cx[:size] + i * g)
        outputs.append(o * cells[-1].tanh())
        hx, cx = with_first_rows(outputs[-1], hx), with_first_rows(cells[-1], cx)
    return in_packed_order(outputs, reverse), hx, cx, in_packed_order(gates, reverse), in_packed_order(cells, reverse)


@lstm_sequence.gradient("input", "hx", "cx", "weight_hh")
def lstm_sequence_vjp(
    grad_output, grad_hn, grad_cn, grad_gates, grad_cells, output, gates, cells, hx, cx, weight_hh, batch_sizes, reverse
):
    saved, gradients = (output, gates, cells), (grad_output, grad_hn, grad_cn, grad_gates, grad_cells)
    return ops.lstm_sequence_backward(hx, cx, weight_hh, *saved, batch_sizes, reverse, *gradients)


def _lstm_backward_shape(hx, cx, weight_hh, output, gates, cells, batch_sizes, reverse, *gradients):
    _check("lstm_sequence_backward", gates, hx, weight_hh, batch_sizes, 4)
    rows = (gates[0], hx[1])
    results = zip(gradients, (rows, hx, hx, gates, rows))
    _check_gradients("lstm_sequence_backward", (cx, hx), (output, rows), (cells, rows), *results)
    return gates, hx, cx, weight_hh


@composite(dtype=results(4), shape=_lstm_backward_shape, outputs=("input", "hx", "cx", "weight_hh"), public="")
def lstm_sequence_backward(
    hx, cx, weight_hh, output, gates, cells, batch_sizes: tuple[int, ...], reverse: bool, grad_output=None,
    grad_hn=None, grad_cn=None, grad_gates=None, grad_cells=None,
):  # fmt: skip
    """The gradients of `lstm_sequence` for its input, first states and weight."""
    i, f, g, o = gate_columns(gates, 4)
    shown = cells.tanh()
    slopes = ops.cat([i * (1 - i), f * (1 - f), 1 - g * g, o * (1 - o)], 1)
    factors = ops.cat([g, previous_states(cx, cells, batch_sizes, reverse), i, shown], 1) * slopes
    through = o * (1 - shown * shown)
    direct = None if grad_gates is None else grad_gates * slopes
    state = ops.zeros_like(hx) if grad_hn is None else grad_hn
    cell = ops.zeros_like(cx) if grad_cn is None else grad_cn
    parts = []
    for start, stop, size in reversed(packed_steps(batch_sizes, reverse)):
        h = plus(step_rows(grad_output, start, stop), state[:size])
        c = plus(step_rows(grad_cells, start, stop), cell[:size]) + h * through[start:stop]
        parts.append(plus(step_rows(direct, start, stop), ops.cat([c, c, c, h], 1) * factors[start:stop]))
        state, cell = with_first_rows(parts[-1] @ weight_hh, state), with_first_rows(c * f[start:stop], cell)
    grad_input = in_packed_order(parts, not reverse)
    return grad_input, state, cell, grad_input.t() @ previous_states(hx, output, batch_sizes, reverse)


# -- gated recurrent unit ---------------------------------------------------------------------------------------------
@composite(dtype=results(3), shape=_gru_shape, outputs=("output", "hn", "gates"), public="")
def gru_sequence(input, hx, weight_hh, batch_sizes: tuple[int, ...], reverse: bool, bias_hh=None):
    """Gated recurrent units (Cho et al. 2014, with the reset gate after the product as in cuDNN).

    With (x_r, x_z, x_n) the parts of x and (h_r, h_z, h_n) those of ``weight_hh @ h + bias_hh``:
    ``r = sigmoid(x_r + h_r)``, ``z = sigmoid(x_z + h_z)``, ``n = tanh(x_n + r * h_n)`` and ``h = (1 - z) * n + z * h``.

    Args:
        input: (rows, 3 hidden size), packed.
        hx: (batch, hidden size), the first states.
        weight_hh: (3 hidden size, hidden size).
        batch_sizes: the number of rows of each step.
        reverse: whether each sequence is read from its end.
        bias_hh: (3 hidden size) or None.

    Returns:
        output: (rows, hidden size), the state at every step.
        hn: the last states.
        gates: (r, z, n, h_n) at every step, for the gradient.
    """
    outputs, gates = [], []
    for start, stop, size in packed_steps(batch_sizes, reverse):
        x_r, x_z, x_n = gate_columns(input[start:stop], 3)
        h_r, h_z, h_n = gate_columns(ops.linear(hx[:size], weight_hh, bias_hh), 3)
        r, z = (x_r + h_r).sigmoid(), (x_z + h_z).sigmoid()
        n = (x_n + r * h_n).tanh()
        gates.append(ops.cat([r, z, n, h_n], 1))
        outputs.append(n + z * (hx[:size] - n))
        hx = with_first_rows(outputs[-1], hx)
    return in_packed_order(outputs, reverse), hx, in_packed_order(gates, reverse)


@gru_sequence.gradient("input", "hx", "weight_hh", "bias_hh")
def gru_sequence_vjp(grad_output, grad_hn, grad_gates, output, gates, hx, weight_hh, batch_sizes, reverse):
    return ops.gru_sequence_backward(
        hx, weight_hh, output, gates, batch_sizes, reverse, grad_output, grad_hn, grad_gates
    )


def _gru_backward_shape(hx, weight_hh, output, gates, batch_sizes, reverse, *gradients):
    rows, hidden = gates[0], hx[-1]
    _check("gru_sequence_backward", (rows, 3 * hidden), hx, weight_hh, batch_sizes, 3)
    results = zip(gradients, (output, hx, gates))
    saved = (output, (rows, hidden)), (gates, (rows, 4 * hidden))
    _check_gradients("gru_sequence_backward", *saved, *results)
    return (rows, 3 * hidden), hx, weight_hh, weight_hh[:1]


@composite(dtype=results(4), shape=_gru_backward_shape, outputs=("input", "hx", "weight_hh", "bias_hh"), public="")
def gru_sequence_backward(
    hx, weight_hh, output, gates, batch_sizes: tuple[int, ...], reverse: bool, grad_output=None, grad_hn=None,
    grad_gates=None,
):  # fmt: skip
    """The gradients of `gru_sequence` for its input, first state, weight and bias."""
    r, z, n, h_n = gate_columns(gates, 4)
    previous = previous_states(hx, output, batch_sizes, reverse)
    reset, candidate = r * (1 - r), 1 - n * n

    def hidden_part(to_z, to_n):
        """The gradients before the sigmoids and of h_n, given those of z and n."""
        inner = to_n * candidate
        return [inner * h_n * reset, to_z * z * (1 - z), inner * r]

    factors = ops.cat(hidden_part(previous - n, 1 - z), 1)
    direct = None
    if grad_gates is not None:
        to_r, to_z, to_n, to_h = gate_columns(grad_gates, 4)
        from_r, from_z, from_h = hidden_part(to_z, to_n)
        direct = ops.cat([from_r + to_r * reset, from_z, from_h + to_h], 1)
    state = ops.zeros_like(hx) if grad_hn is None else grad_hn
    parts, states = [], []
    for start, stop, size in reversed(packed_steps(batch_sizes, reverse)):
        states.append(plus(step_rows(grad_output, start, stop), state[:size]))
        parts.append(plus(step_rows(direct, start, stop), ops.cat([states[-1]] * 3, 1) * factors[start:stop]))
        state = with_first_rows(states[-1] * z[start:stop] + parts[-1] @ weight_hh, state)
    grad_hidden, grad_state = in_packed_order(parts, not reverse), in_packed_order(states, not reverse)
    to_candidate = grad_state * (1 - z) if grad_gates is None else grad_state * (1 - z) + to_n
    grad_input = ops.cat([grad_hidden[:, : 2 * hx.size(1)], to_candidate * candidate], 1)
    return grad_input, state, grad_hidden.t() @ previous, grad_hidden.sum(0)
