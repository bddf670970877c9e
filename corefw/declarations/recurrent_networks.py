"""Recurrent cells and networks, made of the recurrences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import overload

from corefw.declarations._shared.families import family
from corefw.declarations._shared.steps import in_packed_order, plus, with_first_rows
from corefw.dispatch.declare import composite, ops
from corefw.errors import ShapeError
from corefw.shapes import packed_steps
from corefw.tensor import Tensor


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
    projected = ops.linear(input, w_ih, plus(b_ih, b_hh))
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
    _, hn, cn, _, _ = ops.lstm_sequence(ops.linear(input, w_ih, plus(b_ih, b_hh)), h, c, w_hh, (h.shape[0],), False)
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
        h, c = with_first_rows(outputs[-1], h), with_first_rows(cell, c)
    return in_packed_order(outputs, reverse), [h, c]


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
        input, hx, params: Sequence[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool,
        bidirectional: bool, batch_first: bool,
    ): ...  # fmt: skip

    def packed(
        data, batch_sizes, hx, params: Sequence[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool,
        bidirectional: bool,
    ): ...  # fmt: skip

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
