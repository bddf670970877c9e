"""Attention and recurrences as ONNX."""

from __future__ import annotations

from math import inf

from corefw.capture.program import Value
from corefw.onnx.graph import Graph
from corefw.onnx.table import written_as


@written_as("attention")
def attention(g: Graph, query, key, value, bias=None, is_causal=False, scale=1.0):
    ndim = len(key.shape)
    order = [*range(ndim - 2), ndim - 1, ndim - 2]
    scores = g.node("MatMul", g.node("Mul", query, g.number(scale)), g.transpose(key, order))
    if bias is not None:
        scores = g.node("Add", scores, g.cast(bias, g.dtype))
    if is_causal:
        size = g.node("Concat", g.size_of(query, ndim - 2), g.size_of(key, ndim - 2), axis=0)
        never = g.node("Expand", g.number(-inf), size)
        scores = g.node("Add", scores, g.node("Trilu", never, g.constant(1, "int64"), upper=1))
    weights = g.node("Softmax", scores, axis=-1)
    if bias is not None:  # a query that may attend to no key
        nowhere = g.node("Equal", g.reduce("Max", scores, [-1], True), g.number(-inf))
        weights = g.node("Where", nowhere, g.number(0), weights)
    logsumexp = None
    if g.line.results[1] in g.used:
        logsumexp = g.reduce("LogSumExp", scores, [-1], False)
        if bias is not None:
            nowhere = g.node("Equal", logsumexp, g.number(-inf))
            logsumexp = g.node("Where", nowhere, g.number(inf), logsumexp)
    return g.node("MatMul", weights, value), logsumexp


# -- recurrences ------------------------------------------------------------------------------------------------------
def _reordered(g: Graph, value, gates: list[int], hidden: int):
    """A weight or bias (gates * hidden, ...), with PyTorch's order of gates, in ONNX's."""
    if gates == sorted(gates):
        return value
    parts = g.node("Split", value, g.constant([hidden] * len(gates), "int64"), outputs=len(gates), axis=0)
    return g.node("Concat", *(parts[i] for i in gates), axis=0)


def _projection(g: Graph, input: Value, width: int) -> tuple:
    """The rows, weight and bias of which the input of a recurrence is the product, or itself by the identity."""
    line = input.line
    if line is not None and line.op.name == "linear" and len(line.arguments[0].shape) == 2:
        rows, weight, bias = (*line.arguments, None)[:3]
        return rows, weight, bias, rows.shape[1]
    identity = g.constant([[float(i == j) for j in range(width)] for i in range(width)], g.dtype.numpy)
    return input, identity, None, width


def _recurrence(g: Graph, kind: str, input, states, weight, batch_sizes, reverse, gates, bias_hh=None, **options):
    """A recurrent node over rows of equally many sequences: its outputs without the dimension of directions."""
    runs = [batch_sizes] if isinstance(batch_sizes, tuple) else [batch_sizes.first, batch_sizes.second]
    if any(len(set(sizes)) > 1 for sizes in runs):
        g.refuse("sequences of different lengths (packed ones) have no ONNX form here; pad them")
    hidden = g.static(weight.shape[1], "the size of the state")
    width = len(gates) * hidden
    rows, weight_ih, bias, features = _projection(g, input, width)
    batch = states[0].shape[0]
    if isinstance(batch, int):
        steps = g.reshape(rows, (-1, batch, features))
    else:
        shape = g.node("Concat", g.constant([-1], "int64"), g.size_of(states[0], 0), g.ints([features]), axis=0)
        steps = g.node("Reshape", rows, shape)
    biases = None
    if bias is not None or bias_hh is not None:
        zeros = g.constant([0.0] * width, g.dtype.numpy)
        halves = [zeros if b is None else _reordered(g, b, gates, hidden) for b in (bias, bias_hh)]
        biases = g.unsqueeze(g.node("Concat", *halves, axis=0), [0])
    w, r = (g.unsqueeze(_reordered(g, value, gates, hidden), [0]) for value in (weight_ih, weight))
    first = [g.unsqueeze(state, [0]) for state in states]
    direction = "reverse" if reverse else "forward"
    outputs = g.node(
        kind, steps, w, r, biases, None, *first, outputs=1 + len(states), hidden_size=hidden, direction=direction,
        **options,
    )  # fmt: skip
    output = g.reshape(outputs[0], (-1, hidden))
    return output, *(g.squeeze(last, [0]) for last in outputs[1:])


@written_as("lstm_sequence")
def lstm_sequence(g: Graph, input, hx, cx, weight_hh, batch_sizes, reverse):
    # i, f, g, o here; i, o, f, c there
    return *_recurrence(g, "LSTM", input, [hx, cx], weight_hh, batch_sizes, reverse, [0, 3, 1, 2]), None, None


@written_as("gru_sequence")
def gru_sequence(g: Graph, input, hx, weight_hh, batch_sizes, reverse, bias_hh=None):
    # r, z, n here; z, r, h there
    gates = [1, 0, 2]
    options = {"bias_hh": bias_hh, "linear_before_reset": 1}
    return *_recurrence(g, "GRU", input, [hx], weight_hh, batch_sizes, reverse, gates, **options), None


@written_as("rnn_sequence")
def rnn_sequence(g: Graph, input, hx, weight_hh, batch_sizes, reverse, nonlinearity):
    activation = [{"tanh": "Tanh", "relu": "Relu"}[nonlinearity]]
    return _recurrence(g, "RNN", input, [hx], weight_hh, batch_sizes, reverse, [0], activations=activation)
