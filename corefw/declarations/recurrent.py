"""Recurrent networks: the recurrences themselves, over packed sequences, with cells and layers built from them.

A recurrence takes its input's part of the gates already computed, by one product for all steps. Sequences are packed:
row after row the first step of all sequences, the longest first, then the second step of those that have one, and so
on; ``batch_sizes`` says how many each step has. Equally long sequences are packed by flattening (steps, batch).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import overload

from corefw.declarations._shared.families import family
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


# -- steps in the tensor language -------------------------------------------------------------------------------------
def _joined(first, state):
    """`state` with its first rows replaced."""
    rows = first.shape[0]
    return first if rows == state.shape[0] else ops.cat([first, state[rows:]])


def _packed(parts, reverse: bool):
    """The rows of all steps, given in the order of their computation, in packed order."""
    return ops.cat(parts[::-1] if reverse else parts)


def _previous(state, rows, batch_sizes, reverse: bool):
    """For every packed row the state from which it was computed: that of the step before, or the first `state`."""
    steps = packed_steps(batch_sizes, reverse)
    parts = [state[: steps[0][2]]]
    for (start, _, before), (_, _, size) in pairwise(steps):
        part = rows[start : start + min(before, size)]
        parts.append(part if size <= before else ops.cat([part, state[before:size]]))
    return _packed(parts, reverse)


def _parts(gates, number: int):
    """The columns of each gate."""
    size = gates.size(1) // number
    return [gates.narrow(1, i * size, size) for i in range(number)]


def _plus(first, second):
    """The sum, where a gradient that is None counts as zero."""
    return second if first is None else first if second is None else first + second


def _rows(gradient, start: int, stop: int):
    return None if gradient is None else gradient[start:stop]


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
        hx = _joined(outputs[-1], hx)
    return _packed(outputs, reverse), hx


@rnn_sequence.gradient("input", "hx", "weight_hh")
def rnn_sequence_vjp(grad_output, grad_hn, output, hx, weight_hh, batch_sizes, reverse, nonlinearity):
    return ops.rnn_sequence_backward(hx, weight_hh, output, batch_sizes, reverse, nonlinearity, grad_output, grad_hn)


def _rnn_backward_shape(hx, weight_hh, output, batch_sizes, reverse, nonlinearity, grad_output=None, grad_hn=None):
    _check("rnn_sequence_backward", output, hx, weight_hh, batch_sizes, 1)
    _check_gradients("rnn_sequence_backward", (grad_output, output), (grad_hn, hx))
    return output, hx, weight_hh


@composite(dtype=results(3), shape=_rnn_backward_shape, outputs=("input", "hx", "weight_hh"), public="")
def rnn_sequence_backward(
    hx,
    weight_hh,
    output,
    batch_sizes: tuple[int, ...],
    reverse: bool,
    nonlinearity: str,
    grad_output=None,
    grad_hn=None,
):
    """The gradients of `rnn_sequence` for its input, first state and weight."""
    slopes = 1 - output * output if nonlinearity == "tanh" else (output > 0).to(output.dtype)
    state = ops.zeros_like(hx) if grad_hn is None else grad_hn
    parts = []
    for start, stop, size in reversed(packed_steps(batch_sizes, reverse)):
        parts.append(_plus(_rows(grad_output, start, stop), state[:size]) * slopes[start:stop])
        state = _joined(parts[-1] @ weight_hh, state)
    grad_input = _packed(parts, not reverse)
    return grad_input, state, grad_input.t() @ _previous(hx, output, batch_sizes, reverse)


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
        i, f, g, o = _parts(input[start:stop] + hx[:size] @ weight_hh.t(), 4)
        i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
        gates.append(ops.cat([i, f, g, o], 1))
        cells.append(f * cx[:size] + i * g)
        outputs.append(o * cells[-1].tanh())
        hx, cx = _joined(outputs[-1], hx), _joined(cells[-1], cx)
    return _packed(outputs, reverse), hx, cx, _packed(gates, reverse), _packed(cells, reverse)


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
    hx,
    cx,
    weight_hh,
    output,
    gates,
    cells,
    batch_sizes: tuple[int, ...],
    reverse: bool,
    grad_output=None,
    grad_hn=None,
    grad_cn=None,
    grad_gates=None,
    grad_cells=None,
):
    """The gradients of `lstm_sequence` for its input, first states and weight."""
    i, f, g, o = _parts(gates, 4)
    shown = cells.tanh()
    slopes = ops.cat([i * (1 - i), f * (1 - f), 1 - g * g, o * (1 - o)], 1)
    factors = ops.cat([g, _previous(cx, cells, batch_sizes, reverse), i, shown], 1) * slopes
    through = o * (1 - shown * shown)
    direct = None if grad_gates is None else grad_gates * slopes
    state = ops.zeros_like(hx) if grad_hn is None else grad_hn
    cell = ops.zeros_like(cx) if grad_cn is None else grad_cn
    parts = []
    for start, stop, size in reversed(packed_steps(batch_sizes, reverse)):
        h = _plus(_rows(grad_output, start, stop), state[:size])
        c = _plus(_rows(grad_cells, start, stop), cell[:size]) + h * through[start:stop]
        parts.append(_plus(_rows(direct, start, stop), ops.cat([c, c, c, h], 1) * factors[start:stop]))
        state, cell = _joined(parts[-1] @ weight_hh, state), _joined(c * f[start:stop], cell)
    grad_input = _packed(parts, not reverse)
    return grad_input, state, cell, grad_input.t() @ _previous(hx, output, batch_sizes, reverse)


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
        x_r, x_z, x_n = _parts(input[start:stop], 3)
        h_r, h_z, h_n = _parts(ops.linear(hx[:size], weight_hh, bias_hh), 3)
        r, z = (x_r + h_r).sigmoid(), (x_z + h_z).sigmoid()
        n = (x_n + r * h_n).tanh()
        gates.append(ops.cat([r, z, n, h_n], 1))
        outputs.append(n + z * (hx[:size] - n))
        hx = _joined(outputs[-1], hx)
    return _packed(outputs, reverse), hx, _packed(gates, reverse)


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
    hx,
    weight_hh,
    output,
    gates,
    batch_sizes: tuple[int, ...],
    reverse: bool,
    grad_output=None,
    grad_hn=None,
    grad_gates=None,
):
    """The gradients of `gru_sequence` for its input, first state, weight and bias."""
    r, z, n, h_n = _parts(gates, 4)
    previous = _previous(hx, output, batch_sizes, reverse)
    reset, candidate = r * (1 - r), 1 - n * n

    def hidden_part(to_z, to_n):
        """The gradients before the sigmoids and of h_n, given those of z and n."""
        inner = to_n * candidate
        return [inner * h_n * reset, to_z * z * (1 - z), inner * r]

    factors = ops.cat(hidden_part(previous - n, 1 - z), 1)
    direct = None
    if grad_gates is not None:
        to_r, to_z, to_n, to_h = _parts(grad_gates, 4)
        from_r, from_z, from_h = hidden_part(to_z, to_n)
        direct = ops.cat([from_r + to_r * reset, from_z, from_h + to_h], 1)
    state = ops.zeros_like(hx) if grad_hn is None else grad_hn
    parts, states = [], []
    for start, stop, size in reversed(packed_steps(batch_sizes, reverse)):
        states.append(_plus(_rows(grad_output, start, stop), state[:size]))
        parts.append(_plus(_rows(direct, start, stop), ops.cat([states[-1]] * 3, 1) * factors[start:stop]))
        state = _joined(states[-1] * z[start:stop] + parts[-1] @ weight_hh, state)
    grad_hidden, grad_state = _packed(parts, not reverse), _packed(states, not reverse)
    to_candidate = grad_state * (1 - z) if grad_gates is None else grad_state * (1 - z) + to_n
    grad_input = ops.cat([grad_hidden[:, : 2 * hx.size(1)], to_candidate * candidate], 1)
    return grad_input, state, grad_hidden.t() @ previous, grad_hidden.sum(0)


# -- cells ------------------------------------------------------------------------------------------------------------
def _check_cell(input, hx, w_ih, w_hh, gates: int) -> None:
    """Refuse what does not fit together, in PyTorch's words."""
    for names, first, second in (("input and hx", input, hx), ("weight_ih and weight_hh", w_ih, w_hh)):
        if first.ndim != 2 or second.ndim != 2:
            shapes = f"{list(first.shape)} and {list(second.shape)}"
            raise ShapeError(f"{names} must have 2 dimensions, got shapes {shapes}")
    if input.shape[1] != w_ih.shape[1]:
        raise ShapeError(f"input has inconsistent input_size: got {input.shape[1]} expected {w_ih.shape[1]}")
    if input.shape[0] != hx.shape[0]:
        raise ShapeError(f"Input batch size {input.shape[0]} doesn't match hidden0 batch size {hx.shape[0]}")
    if hx.shape[1] != w_hh.shape[1]:
        raise ShapeError(f"hidden0 has inconsistent hidden_size: got {hx.shape[1]}, expected {w_hh.shape[1]}")
    rows = gates * hx.shape[1]
    for name, weight in (("weight_ih", w_ih), ("weight_hh", w_hh)):
        if weight.shape[0] != rows:
            raise ShapeError(f"{name} first dim must be {gates} * hidden_size = {rows}, but got {weight.shape[0]}")


def _rnn_cell(nonlinearity: str, input, hx, w_ih, w_hh, b_ih, b_hh):
    _check_cell(input, hx, w_ih, w_hh, 1)
    projected = ops.linear(input, w_ih, _plus(b_ih, b_hh))
    return ops.rnn_sequence(projected, hx, w_hh, (hx.shape[0],), False, nonlinearity)[0]


@composite(public="corefw")
def rnn_tanh_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step of a simple recurrent network, ``tanh(w_ih @ x + b_ih + w_hh @ h + b_hh)``.

    Args:
        input: (batch, input size).
        hx: (batch, hidden size).
        w_ih: (hidden size, input size).
        w_hh: (hidden size, hidden size).
        b_ih, b_hh: (hidden size) or None.

    >>> import corefw as torch
    >>> torch.rnn_tanh_cell(torch.ones(1, 2), torch.zeros(1, 1), torch.ones(1, 2), torch.ones(1, 1))
    tensor([[0.9640]])
    """
    return _rnn_cell("tanh", input, hx, w_ih, w_hh, b_ih, b_hh)


@composite(public="corefw")
def rnn_relu_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """As `rnn_tanh_cell`, with ``relu`` in place of ``tanh``.

    >>> import corefw as torch
    >>> torch.rnn_relu_cell(torch.ones(1, 2), torch.zeros(1, 1), torch.ones(1, 2), torch.ones(1, 1))
    tensor([[2.]])
    """
    return _rnn_cell("relu", input, hx, w_ih, w_hh, b_ih, b_hh)


@composite(public="corefw")
def lstm_cell(input, hx: Sequence[Tensor], w_ih, w_hh, b_ih=None, b_hh=None) -> tuple[Tensor, Tensor]:
    """One step of long short-term memory; the formulas are those of `corefw.nn.LSTMCell`.

    Args:
        input: (batch, input size).
        hx: the states h and c, each (batch, hidden size).
        w_ih: (4 hidden size, input size).
        w_hh: (4 hidden size, hidden size).
        b_ih, b_hh: (4 hidden size) or None.

    Returns: the next h and c.

    >>> import corefw as torch
    >>> state = (torch.zeros(1, 1), torch.zeros(1, 1))
    >>> torch.lstm_cell(torch.ones(1, 2), state, torch.ones(4, 2), torch.ones(4, 1))
    (tensor([[0.6083]]), tensor([[0.8491]]))
    """
    if len(hx) != 2:
        raise ShapeError(f"lstm_cell expects two hidden states, got {len(hx)}")
    h, c = hx
    _check_cell(input, h, w_ih, w_hh, 4)
    _, hn, cn, _, _ = ops.lstm_sequence(ops.linear(input, w_ih, _plus(b_ih, b_hh)), h, c, w_hh, (h.shape[0],), False)
    return hn, cn


@composite(public="corefw")
def gru_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step of a gated recurrent unit; the formulas are those of `corefw.nn.GRUCell`.

    Args:
        input: (batch, input size).
        hx: (batch, hidden size).
        w_ih: (3 hidden size, input size).
        w_hh: (3 hidden size, hidden size).
        b_ih, b_hh: (3 hidden size) or None.

    >>> import corefw as torch
    >>> torch.gru_cell(torch.ones(1, 2), torch.zeros(1, 1), torch.ones(3, 2), torch.ones(3, 1))
    tensor([[0.1149]])
    """
    _check_cell(input, hx, w_ih, w_hh, 3)
    return ops.gru_sequence(ops.linear(input, w_ih, b_ih), hx, w_hh, (hx.shape[0],), False, b_hh)[1]


# -- layers -----------------------------------------------------------------------------------------------------------
_PADDED = ["input", "hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional", "batch_first"]
_PACKED = ["data", "batch_sizes", "hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional"]


def _arguments(name: str, arguments: tuple, keywords: dict) -> dict:
    """The arguments of a layer by name; the two forms differ in what comes fourth."""
    packed = "data" in keywords or "batch_sizes" in keywords
    packed = packed or (len(arguments) > 3 and not isinstance(arguments[3], bool | int))
    names = _PACKED if packed else _PADDED
    given = {**dict(zip(names, arguments)), **keywords}
    if len(arguments) + len(keywords) != len(names) or given.keys() != set(names):
        raise TypeError(
            f"{name}(): expected ({', '.join(_PADDED)}) or ({', '.join(_PACKED)}), got {len(arguments)} positional "
            f"arguments{' and ' + ', '.join(keywords) if keywords else ''}"
        )
    return given


def _simple_layer(nonlinearity: str):
    """A layer in one direction of a simple recurrent network: (rows, states, weights, sizes, direction) to (rows,
    last states)."""

    def layer(input, states, weights, batch_sizes, reverse):
        w_ih, w_hh, *biases = weights
        projected = ops.linear(input, w_ih, biases[0] + biases[1] if biases else None)
        output, *last = ops.rnn_sequence(projected, *states, w_hh, batch_sizes, reverse, nonlinearity)
        return output, last

    return layer


def _gru_layer(input, states, weights, batch_sizes, reverse):
    w_ih, w_hh, b_ih, b_hh = (*weights, None, None)[:4]
    output, hn, _ = ops.gru_sequence(ops.linear(input, w_ih, b_ih), *states, w_hh, batch_sizes, reverse, b_hh)
    return output, [hn]


def _lstm_layer(input, states, weights, batch_sizes, reverse):
    w_ih, w_hh, *others = weights
    projected = ops.linear(input, w_ih, others[0] + others[1] if len(others) > 1 else None)
    if len(others) % 2:
        return _projected_lstm_layer(projected, states, w_hh, others[-1], batch_sizes, reverse)
    output, hn, cn, _, _ = ops.lstm_sequence(projected, *states, w_hh, batch_sizes, reverse)
    return output, [hn, cn]


def _projected_lstm_layer(input, states, weight_hh, weight_hr, batch_sizes, reverse):
    """Long short-term memory whose output and state h are ``weight_hr @ h`` (Sak et al. 2014)."""
    h, c = states
    outputs = []
    nothing = ops.zeros_like(c)  # the state's part of the gates is in the input already
    no_weight = weight_hh.new_zeros((weight_hh.shape[0], c.shape[1]))
    for start, stop, size in packed_steps(batch_sizes, reverse):
        gates = input[start:stop] + ops.linear(h[:size], weight_hh)
        hidden, _, cell, _, _ = ops.lstm_sequence(gates, nothing[:size], c[:size], no_weight, (size,), False)
        outputs.append(ops.linear(hidden, weight_hr))
        h, c = _joined(outputs[-1], h), _joined(cell, c)
    return _packed(outputs, reverse), [h, c]


def _layers(name: str, layer, arguments: tuple, keywords: dict) -> tuple:
    """Run `layer` for every layer and direction: (output, last states...)."""
    given = _arguments(name, arguments, keywords)
    states = list(given["hx"]) if name == "lstm" else [given["hx"]]
    if len(states) != 1 + (name == "lstm"):
        raise ShapeError(f"{name} expects two hidden states, got {len(states)}")
    packed = "data" in given
    if packed:
        rows, batch_sizes = given["data"], tuple(given["batch_sizes"].tolist())
        steps = len(batch_sizes)
    else:
        padded = given["input"].transpose(0, 1) if given["batch_first"] else given["input"]
        if padded.ndim != 3:
            raise ShapeError(f"{name}: input must have 3 dimensions, got {padded.ndim}")
        steps, batch = padded.shape[:2]
        rows, batch_sizes = padded.flatten(0, 1), (batch,) * steps
    if not steps:
        raise ShapeError("Expected sequence length to be larger than 0 in RNN")
    if len({state.shape[1] for state in states} | {batch_sizes[0]}) > 1:
        raise ShapeError(f"{name}: Expected hidden batch size {batch_sizes[0]}, got {[s.shape[1] for s in states]}")
    directions = 2 if given["bidirectional"] else 1
    runs = given["num_layers"] * directions
    params = list(given["params"])
    each = 2 + 2 * given["has_biases"] + (name == "lstm" and states[0].shape[2] != states[1].shape[2])
    if len(params) != each * runs:
        raise ShapeError(f"{name}: got an incorrect number of RNN parameters: {len(params)}, expected {each * runs}")
    if any(state.shape[0] != runs for state in states):
        raise ShapeError(f"{name}: Expected {runs} hidden states, got {[state.shape[0] for state in states]}")
    first = list(zip(*(state.unbind(0) for state in states)))
    last: list[list] = []
    for run in range(0, runs, directions):
        if run and given["dropout"] and given["train"]:
            rows = ops.dropout(rows, given["dropout"], True)
        outputs = []
        for i in range(run, run + directions):
            output, ended = layer(rows, first[i], params[i * each : (i + 1) * each], batch_sizes, i > run)
            outputs.append(output)
            last.append(ended)
        rows = outputs[0] if directions == 1 else ops.cat(outputs, 1)
    if not packed:
        rows = rows.unflatten(0, (steps, batch))
        rows = rows.transpose(0, 1) if given["batch_first"] else rows
    return rows, *(ops.stack(states) for states in zip(*last))


_Two = tuple[Tensor, Tensor]
_Three = tuple[Tensor, Tensor, Tensor]


def _tell_forms(name: str, states: str, result: str) -> None:
    """Tell both forms of the network `name`, for padded and for packed sequences, as overloads."""

    def padded(
        input,
        hx,
        params: Sequence[Tensor],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ): ...

    def packed(
        data,
        batch_sizes,
        hx,
        params: Sequence[Tensor],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
    ): ...

    for form in (padded, packed):
        form.__name__ = form.__qualname__ = name
        form.__annotations__.update({"hx": states, "return": result} if states else {"return": result})
        overload(form)


@family(public="corefw")
def _network(name: str, layer: Callable, *, states: str = "", result: str = "_Two"):
    """Networks of such layers.

    Args:
        layer: runs one layer in one direction.
        states: the type of `hx`, if it is not a tensor.
        result: the type of the result.
    """

    def network(*arguments, **keywords):
        return _layers(name, layer, arguments, keywords)

    _tell_forms(name, states, result)
    return network


@_network(_simple_layer("tanh"))
def rnn_tanh():
    """A simple recurrent network with tanh: padded sequences ``(input, hx, params, has_biases, num_layers, dropout,
    train, bidirectional, batch_first)`` or packed ones ``(data, batch_sizes, hx, params, has_biases, num_layers,
    dropout, train, bidirectional)``.

    Args:
        input: (steps, batch, input size), or (batch, steps, input size) with `batch_first`.
        data: (rows, input size), packed.
        batch_sizes: the number of rows of each step.
        hx: (layers * directions, batch, hidden size).
        params: for each layer and direction its w_ih, w_hh and, with `has_biases`, b_ih and b_hh.
        num_layers: the number of layers.
        dropout: the probability with which outputs between layers are zero in training.
        train: whether this is training.
        bidirectional: whether each layer also reads the sequences from their ends.

    Returns: the last layer's states at all steps, laid out as the input, and the last states of all layers.

    >>> import corefw as torch
    >>> params = [torch.ones(1, 1), torch.ones(1, 1)]
    >>> torch.rnn_tanh(torch.ones(2, 1, 1), torch.zeros(1, 1, 1), params, False, 1, 0.0, False, False, False)[1]
    tensor([[[0.9427]]])
    """


@_network(_simple_layer("relu"))
def rnn_relu():
    """As `rnn_tanh`, with relu in place of tanh.

    >>> import corefw as torch
    >>> params = [torch.ones(1, 1), torch.ones(1, 1)]
    >>> torch.rnn_relu(torch.ones(2, 1, 1), torch.zeros(1, 1, 1), params, False, 1, 0.0, False, False, False)[1]
    tensor([[[2.]]])
    """


@_network(_gru_layer)
def gru():
    """Gated recurrent units; arguments and results as for `rnn_tanh`, formulas as for `corefw.nn.GRU`.

    >>> import corefw as torch
    >>> params = [torch.ones(3, 1), torch.ones(3, 1)]
    >>> torch.gru(torch.ones(2, 1, 1), torch.zeros(1, 1, 1), params, False, 1, 0.0, False, False, False)[1]
    tensor([[[0.3468]]])
    """


@_network(_lstm_layer, states="Sequence[Tensor]", result="_Three")
def lstm():
    """Long short-term memory; arguments as for `rnn_tanh`, but `hx` holds the states h and c, and formulas as for
    `corefw.nn.LSTM`. Where h is narrower than c, each layer's parameters end with w_hr, which projects h.

    Returns: the last layer's states h at all steps, and the last states h and c of all layers.

    >>> import corefw as torch
    >>> params, state = [torch.ones(4, 1), torch.ones(4, 1)], torch.zeros(1, 1, 1)
    >>> torch.lstm(torch.ones(2, 1, 1), (state, state), params, False, 1, 0.0, False, False, False)[1]
    tensor([[[0.6505]]])
    """
