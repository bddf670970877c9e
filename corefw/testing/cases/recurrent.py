"""Recurrent networks: every sequence is followed by itself, one vector at a time."""

import numpy as np

from corefw.testing.case import Case

SIZES = ((2, 2, 2), (3, 2, 2, 1), (1,))  # batch sizes: equal lengths, different ones, a single row
HIDDEN, FEATURES = 3, 2


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def sequences(batch_sizes, reverse):
    """(sequence, its packed rows in the order of reading) of each sequence."""
    starts = np.cumsum((0, *batch_sizes))
    for b in range(batch_sizes[0]):
        rows = [starts[t] + b for t, size in enumerate(batch_sizes) if size > b]
        yield b, rows[::-1] if reverse else rows


# -- cells ------------------------------------------------------------------------------------------------------------
def rnn(x, states, weight, bias, nonlinearity):
    h = x + weight @ states[0]
    return (np.tanh(h) if nonlinearity == "tanh" else np.maximum(h, 0),), ()


def lstm(x, states, weight, bias):
    h, c = states
    i, f, g, o = np.split(x + weight @ h, 4)
    i, f, g, o = sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)
    c = f * c + i * g
    return (o * np.tanh(c), c), (np.concatenate([i, f, g, o]), c)


def gru(x, states, weight, bias):
    (h,) = states
    x_r, x_z, x_n = np.split(x, 3)
    h_r, h_z, h_n = np.split(weight @ h + (0 if bias is None else bias), 3)
    r, z = sigmoid(x_r + h_r), sigmoid(x_z + h_z)
    n = np.tanh(x_n + r * h_n)
    return ((1 - z) * n + z * h,), (np.concatenate([r, z, n, h_n]),)


# -- recurrences ------------------------------------------------------------------------------------------------------
def follow(cell, input, states, weight, bias, batch_sizes, reverse, *options):
    """Output, last states, and what the cell keeps of every row."""
    last = [state.copy() for state in states]
    output = np.zeros((len(input), states[0].shape[1]), input.dtype)
    kept = None
    for b, rows in sequences(batch_sizes, reverse):
        for row in rows:
            found, extra = cell(input[row], [state[b] for state in last], weight, bias, *options)
            output[row] = found[0]
            kept = kept or [np.zeros((len(input), part.size), input.dtype) for part in extra]
            for array, part in zip(kept, extra):
                array[row] = part
            for state, value in zip(last, found):
                state[b] = value
    return output, *last, *kept


def rnn_sequence(input, hx, weight_hh, batch_sizes, reverse, nonlinearity):
    return follow(rnn, input, [hx], weight_hh, None, batch_sizes, reverse, nonlinearity)


def lstm_sequence(input, hx, cx, weight_hh, batch_sizes, reverse):
    return follow(lstm, input, [hx, cx], weight_hh, None, batch_sizes, reverse)


def gru_sequence(input, hx, weight_hh, batch_sizes, reverse, bias_hh=None):
    return follow(gru, input, [hx], weight_hh, bias_hh, batch_sizes, reverse)


# -- gradients --------------------------------------------------------------------------------------------------------
def trace_back(batch_sizes, reverse, states, histories):
    """(sequence, row, the states before that row), every sequence from its end."""
    for b, rows in sequences(batch_sizes, reverse):
        for i in reversed(range(len(rows))):
            before = [history[rows[i - 1]] if i else state[b] for state, history in zip(states, histories)]
            yield b, rows[i], before


def given(gradient, like):
    return np.zeros_like(like) if gradient is None else gradient.copy()


def rnn_sequence_backward(hx, weight, output, batch_sizes, reverse, nonlinearity, grad_output=None, grad_hn=None):
    to_input, to_weight = np.zeros_like(output), np.zeros_like(weight)
    to_output, to_state = given(grad_output, output), given(grad_hn, hx)
    for b, row, (h,) in trace_back(batch_sizes, reverse, [hx], [output]):
        slope = 1 - output[row] ** 2 if nonlinearity == "tanh" else output[row] > 0
        to_input[row] = (to_output[row] + to_state[b]) * slope
        to_weight += np.outer(to_input[row], h)
        to_state[b] = weight.T @ to_input[row]
    return to_input, to_state, to_weight


def lstm_sequence_backward(
    hx, cx, weight, output, gates, cells, batch_sizes, reverse, to_output=None, to_h=None, to_c=None, to_gates=None,
    to_cells=None,
):  # fmt: skip
    to_input, to_weight = np.zeros_like(gates), np.zeros_like(weight)
    to_output, to_h, to_c = given(to_output, output), given(to_h, hx), given(to_c, cx)
    to_gates, to_cells = given(to_gates, gates), given(to_cells, cells)
    for b, row, (h, c) in trace_back(batch_sizes, reverse, [hx, cx], [output, cells]):
        i, f, g, o = np.split(gates[row], 4)
        shown = np.tanh(cells[row])
        dh = to_output[row] + to_h[b]
        dc = to_cells[row] + to_c[b] + dh * o * (1 - shown**2)
        d = np.concatenate([dc * g, dc * c, dc * i, dh * shown]) + to_gates[row]
        to_input[row] = d * np.concatenate([i * (1 - i), f * (1 - f), 1 - g**2, o * (1 - o)])
        to_weight += np.outer(to_input[row], h)
        to_h[b], to_c[b] = weight.T @ to_input[row], dc * f
    return to_input, to_h, to_c, to_weight


def gru_sequence_backward(hx, weight, output, gates, batch_sizes, reverse, to_output=None, to_h=None, to_gates=None):
    n_rows, hidden = output.shape
    to_input, to_weight = np.zeros((n_rows, 3 * hidden)), np.zeros_like(weight)
    to_bias = np.zeros(3 * hidden)
    to_output, to_h, to_gates = given(to_output, output), given(to_h, hx), given(to_gates, gates)
    for b, row, (h,) in trace_back(batch_sizes, reverse, [hx], [output]):
        r, z, n, h_n = np.split(gates[row], 4)
        dr, dz, dn, dh_n = np.split(to_gates[row], 4)
        dh = to_output[row] + to_h[b]
        before_tanh = (dn + dh * (1 - z)) * (1 - n**2)
        before_r = (dr + before_tanh * h_n) * r * (1 - r)
        before_z = (dz + dh * (h - n)) * z * (1 - z)
        to_input[row] = np.concatenate([before_r, before_z, before_tanh])
        to_hidden = np.concatenate([before_r, before_z, dh_n + before_tanh * r])
        to_weight += np.outer(to_hidden, h)
        to_bias += to_hidden
        to_h[b] = dh * z + weight.T @ to_hidden
    return to_input, to_h, to_weight, to_bias


# -- networks ---------------------------------------------------------------------------------------------------------
def network(cell, *options, states=1):
    """The reference of a whole network, padded or packed; no dropout."""

    def reference(*arguments):
        if isinstance(arguments[3], bool):
            x, hx, params, has_biases, layers, _, _, bidirectional, batch_first = arguments
            x = x.swapaxes(0, 1) if batch_first else x
            rows, batch_sizes = x.reshape(-1, x.shape[2]), (x.shape[1],) * x.shape[0]
        else:
            rows, batch_sizes, hx, params, has_biases, layers, _, _, bidirectional = arguments
            x = None
        initial = hx if states == 2 else [hx]
        each = len(params) // (layers * (1 + bidirectional))
        last = [[] for _ in range(states)]
        for layer in range(layers):
            outputs = []
            for direction in range(1 + bidirectional):
                k = layer * (1 + bidirectional) + direction
                w_ih, w_hh, *others = params[k * each : (k + 1) * each]
                projected, bias = rows @ w_ih.T, None
                if has_biases:
                    bias = others[1]
                    projected = projected + others[0] + (0 if cell is gru else bias)
                w_hr = others[-1] if len(others) % 2 else None
                first = [state[k] for state in initial]
                output, *ended = followed(cell, projected, first, w_hh, bias, w_hr, batch_sizes, direction == 1)
                outputs.append(output)
                for collected, state in zip(last, ended):
                    collected.append(state)
            rows = np.concatenate(outputs, 1)
        if x is not None:
            rows = rows.reshape(*x.shape[:2], -1)
            rows = rows.swapaxes(0, 1) if batch_first else rows
        return rows, *map(np.stack, last)

    def followed(cell, projected, first, w_hh, bias, w_hr, batch_sizes, reverse):
        def step(x, states, weight, bias, *options):
            found, extra = cell(x, states, weight, bias, *options)
            return (found if w_hr is None else (w_hr @ found[0], *found[1:])), extra

        return follow(step, projected, first, w_hh, bias, batch_sizes, reverse, *options)[: 1 + states]

    return reference


def one_step(cell, *options):
    """The reference of a cell."""

    def reference(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
        states = hx if isinstance(hx, list) else [hx]
        projected = input @ w_ih.T + (0 if b_ih is None else b_ih)
        if cell is not gru and b_hh is not None:
            projected = projected + b_hh
        found = follow(cell, projected, states, w_hh, b_hh, (len(input),), False, *options)
        return found[1:3] if len(states) == 2 else found[1]

    return reference


# -- arguments --------------------------------------------------------------------------------------------------------
def drawer(rng, dtype):
    return lambda *shape: rng.uniform(-1, 1, shape).astype(dtype)


def recurrence(gates, states, *options, bias=False):
    """Arguments of a recurrence."""

    def make(rng, dtype):
        draw = drawer(rng, dtype)
        return [
            (
                [
                    draw(sum(sizes), gates * HIDDEN),
                    *(draw(sizes[0], HIDDEN) for _ in range(states)),
                    draw(gates * HIDDEN, HIDDEN),
                    sizes,
                    reverse,
                    *option,
                ],
                {"bias_hh": draw(gates * HIDDEN)} if bias and reverse else {},
            )
            for sizes in SIZES
            for reverse in (False, True)
            for option in (options or ((),))
        ]

    return make


def backward(gates, states, kept, *options):
    """Arguments of the gradient of a recurrence, with all gradients of its results and with the first alone."""

    def make(rng, dtype):
        draw = drawer(rng, dtype)
        found = []
        for sizes, reverse in zip(SIZES, (False, True, False)):
            rows = sum(sizes)
            for option in options or ((),):
                first = [draw(sizes[0], HIDDEN) for _ in range(states)]
                history = [draw(rows, width * HIDDEN) for width in (1, *kept)]
                gradients = [draw(*array.shape) for array in (history[0], *first, *history[1:])]
                arguments = [*first, draw(gates * HIDDEN, HIDDEN), *history, sizes, reverse, *option]
                found += [([*arguments, *gradients], {}), ([*arguments, gradients[0]], {})]
        return found

    return make


def networks(gates, states=1):
    """Arguments of whole networks."""

    def make(rng, dtype):
        draw = drawer(rng, dtype)

        def sample(layers, directions, biases, packed, batch_first=False, projected=0):
            width = projected or HIDDEN
            params = []
            for layer in range(layers):
                for _ in range(directions):
                    rows = gates * HIDDEN
                    params += [draw(rows, width * directions if layer else FEATURES), draw(rows, width)]
                    params += [draw(rows), draw(rows)] * biases
                    params += [draw(projected, HIDDEN)] if projected else []
            batch = 3
            hx = [draw(layers * directions, batch, width), draw(layers * directions, batch, HIDDEN)][:states]
            options = [bool(biases), layers, 0.0, True, directions == 2]
            hx = hx if states == 2 else hx[0]
            if packed:
                sizes = np.array([3, 2, 2, 1])
                return [draw(sizes.sum(), FEATURES), sizes, hx, params, *options], {}
            shape = (batch, 4) if batch_first else (4, batch)
            return [draw(*shape, FEATURES), hx, params, *options, batch_first], {}

        found = [sample(1, 1, 1, False), sample(2, 2, 1, False, True), sample(2, 1, 0, True), sample(1, 2, 1, True)]
        if states == 2:
            found += [sample(2, 2, 1, True, projected=2), sample(1, 1, 0, False, projected=1)]
        return found

    return make


def cells(gates, states=1):
    """Arguments of a cell, with and without biases."""

    def make(rng, dtype):
        draw = drawer(rng, dtype)
        rows = gates * HIDDEN
        hx = [draw(2, HIDDEN) for _ in range(states)]
        arguments = [draw(2, FEATURES), hx if states == 2 else hx[0], draw(rows, FEATURES), draw(rows, HIDDEN)]
        return [(arguments, {}), ([*arguments, draw(rows), draw(rows)], {})]

    return make


KINDS = (("tanh",), ("relu",))
INTERNAL = {"torch": None, "rtol": 1e-6}
CASES = (
    Case("rnn_sequence", rnn_sequence, make=recurrence(1, 1, *KINDS), **INTERNAL),
    Case("lstm_sequence", lstm_sequence, make=recurrence(4, 2), **INTERNAL),
    Case("gru_sequence", gru_sequence, make=recurrence(3, 1, bias=True), **INTERNAL),
    Case("rnn_sequence_backward", rnn_sequence_backward, make=backward(1, 1, (), *KINDS), second=False, **INTERNAL),
    Case("lstm_sequence_backward", lstm_sequence_backward, make=backward(4, 2, (4, 1)), second=False, **INTERNAL),
    Case("gru_sequence_backward", gru_sequence_backward, make=backward(3, 1, (4,)), second=False, **INTERNAL),
    Case("rnn_tanh_cell", one_step(rnn, "tanh"), make=cells(1)),
    Case("rnn_relu_cell", one_step(rnn, "relu"), make=cells(1)),
    Case("lstm_cell", one_step(lstm), make=cells(4, 2)),
    Case("gru_cell", one_step(gru), make=cells(3)),
    Case("rnn_tanh", network(rnn, "tanh"), make=networks(1)),
    Case("rnn_relu", network(rnn, "relu"), make=networks(1)),
    Case("lstm", network(lstm, states=2), make=networks(4, 2)),
    Case("gru", network(gru), make=networks(3)),
)
