"""Recurrences over packed sequences: a product and a few fused operations per step, everything else at once."""

from itertools import pairwise

from corefw.shapes import packed_steps


def kernels(xp):
    """Ops that compute."""

    def check(hx, weight_hh, batch_sizes, gates, states, packed):
        """Refuse what NumPy would broadcast or read in part; `packed` is of (array, its columns per hidden unit)."""
        rows, n = sum(batch_sizes), hx.shape[1]
        wanted = [(hx, (batch_sizes[0], n)), (weight_hh, (gates * n, n))]
        wanted += [(state, hx.shape) for state in states] + [(array, (rows, width * n)) for array, width in packed]
        if any(array is not None and array.shape != shape for array, shape in wanted):
            raise ValueError(f"shapes {[array.shape for array, _ in wanted if array is not None]}")
        if any(after > before for before, after in pairwise(batch_sizes)):
            raise ValueError(f"batch sizes {batch_sizes} grow")

    def sigmoid(x):
        """In place; where the exponential overflows its reciprocal is 0, as it should be."""
        x *= -1
        xp.exp(x, out=x)
        x += 1
        xp.reciprocal(x, out=x)

    def previous(state, rows, batch_sizes, reverse):
        """For every packed row the state from which it was computed."""
        steps = packed_steps(batch_sizes, reverse)
        found = xp.empty((rows.shape[0], state.shape[1]), rows.dtype)
        found[steps[0][0] : steps[0][1]] = state[: steps[0][2]]
        for (source, _, before), (start, stop, size) in pairwise(steps):
            known = min(before, size)
            found[start : start + known] = rows[source : source + known]
            found[start + known : stop] = state[known:size]
        return found

    def starting(gradient, like):
        """The gradient of a last state as memory to go on with."""
        return xp.zeros(like.shape, like.dtype) if gradient is None else gradient.copy()

    # -- simple recurrence ----------------------------------------------------------------------------------
    def rnn_sequence(input, hx, weight_hh, batch_sizes, reverse, nonlinearity):
        check(hx, weight_hh, batch_sizes, 1, (), ((input, 1),))
        output, state, weight = xp.empty(input.shape, input.dtype), hx.copy(), weight_hh.T
        for start, stop, size in packed_steps(batch_sizes, reverse):
            h = output[start:stop]
            xp.matmul(state[:size], weight, out=h)
            h += input[start:stop]
            if nonlinearity == "tanh":
                xp.tanh(h, out=h)
            else:
                xp.maximum(h, 0, out=h)
            state[:size] = h
        return output, state

    def rnn_sequence_backward(
        hx, weight_hh, output, batch_sizes, reverse, nonlinearity, grad_output=None, grad_hn=None
    ):
        check(hx, weight_hh, batch_sizes, 1, (grad_hn,), ((output, 1), (grad_output, 1)))
        slopes = 1 - output * output if nonlinearity == "tanh" else output > 0
        before = xp.empty(output.shape, output.dtype)
        state = starting(grad_hn, hx)
        for start, stop, size in reversed(packed_steps(batch_sizes, reverse)):
            h = state[:size] if grad_output is None else state[:size] + grad_output[start:stop]
            xp.multiply(h, slopes[start:stop], out=before[start:stop])
            xp.matmul(before[start:stop], weight_hh, out=state[:size])
        return before, state, before.T @ previous(hx, output, batch_sizes, reverse)

    # -- long short-term memory -----------------------------------------------------------------------------
    def lstm_sequence(input, hx, cx, weight_hh, batch_sizes, reverse):
        check(hx, weight_hh, batch_sizes, 4, (cx,), ((input, 4),))
        rows, n = input.shape[0], hx.shape[1]
        gates = xp.empty(input.shape, input.dtype)
        cells, output = xp.empty((rows, n), input.dtype), xp.empty((rows, n), input.dtype)
        state, cell, weight = hx.copy(), cx.copy(), weight_hh.T
        for start, stop, size in packed_steps(batch_sizes, reverse):
            gate, c, h = gates[start:stop], cells[start:stop], output[start:stop]
            xp.matmul(state[:size], weight, out=gate)
            gate += input[start:stop]
            sigmoid(gate[:, : 2 * n])
            xp.tanh(gate[:, 2 * n : 3 * n], out=gate[:, 2 * n : 3 * n])
            sigmoid(gate[:, 3 * n :])
            xp.multiply(gate[:, n : 2 * n], cell[:size], out=c)
            c += gate[:, :n] * gate[:, 2 * n : 3 * n]
            xp.tanh(c, out=h)
            h *= gate[:, 3 * n :]
            state[:size], cell[:size] = h, c
        return output, state, cell, gates, cells

    def lstm_sequence_backward(hx, cx, weight_hh, output, gates, cells, batch_sizes, reverse, *gradients):
        grad_output, grad_hn, grad_cn, grad_gates, grad_cells = gradients
        of_rows = (output, 1), (gates, 4), (cells, 1), (grad_output, 1), (grad_gates, 4), (grad_cells, 1)
        check(hx, weight_hh, batch_sizes, 4, (cx, grad_hn, grad_cn), of_rows)
        rows, n = cells.shape
        split = gates.reshape(rows, 4, n)
        f, g, o = split[:, 1], split[:, 2], split[:, 3]
        slopes = split * (1 - split)
        slopes[:, 2] = 1 - g * g
        shown = xp.tanh(cells)
        factors = xp.stack([g, previous(cx, cells, batch_sizes, reverse), split[:, 0], shown], 1)
        factors *= slopes
        through = o * (1 - shown * shown)
        before = xp.empty((rows, 4, n), gates.dtype)
        state, cell = starting(grad_hn, hx), starting(grad_cn, cx)
        for start, stop, size in reversed(packed_steps(batch_sizes, reverse)):
            h, c = state[:size], cell[:size]
            if grad_output is not None:
                h += grad_output[start:stop]
            if grad_cells is not None:
                c += grad_cells[start:stop]
            c += h * through[start:stop]
            part = before[start:stop]
            xp.multiply(factors[start:stop, :3], c[:, None], out=part[:, :3])
            xp.multiply(factors[start:stop, 3], h, out=part[:, 3])
            if grad_gates is not None:
                part += grad_gates[start:stop].reshape(size, 4, n) * slopes[start:stop]
            xp.matmul(part.reshape(size, 4 * n), weight_hh, out=h)
            c *= f[start:stop]
        before = before.reshape(rows, 4 * n)
        return before, state, cell, before.T @ previous(hx, output, batch_sizes, reverse)

    # -- gated recurrent unit -------------------------------------------------------------------------------
    def gru_sequence(input, hx, weight_hh, batch_sizes, reverse, bias_hh=None):
        check(hx, weight_hh, batch_sizes, 3, (), ((input, 3),))
        if bias_hh is not None and bias_hh.shape != weight_hh.shape[:1]:
            raise ValueError(f"bias of shape {bias_hh.shape} for a weight of shape {weight_hh.shape}")
        rows, n = input.shape[0], hx.shape[1]
        gates, output = xp.empty((rows, 4 * n), input.dtype), xp.empty((rows, n), input.dtype)
        state, weight = hx.copy(), weight_hh.T
        for start, stop, size in packed_steps(batch_sizes, reverse):
            gate, x, h = gates[start:stop], input[start:stop], state[:size]
            hidden = h @ weight
            if bias_hh is not None:
                hidden += bias_hh
            both, candidate = gate[:, : 2 * n], gate[:, 2 * n : 3 * n]
            xp.add(x[:, : 2 * n], hidden[:, : 2 * n], out=both)
            sigmoid(both)
            gate[:, 3 * n :] = hidden[:, 2 * n :]
            xp.multiply(gate[:, :n], hidden[:, 2 * n :], out=candidate)
            candidate += x[:, 2 * n :]
            xp.tanh(candidate, out=candidate)
            h -= candidate
            h *= gate[:, n : 2 * n]
            h += candidate
            output[start:stop] = h
        return output, state, gates

    def gru_sequence_backward(
        hx, weight_hh, output, gates, batch_sizes, reverse, grad_output=None, grad_hn=None, grad_gates=None
    ):
        packed = (output, 1), (gates, 4), (grad_output, 1), (grad_gates, 4)
        check(hx, weight_hh, batch_sizes, 3, (grad_hn,), packed)
        rows, n = output.shape
        r, z, candidate, hidden = (gates[:, i * n : (i + 1) * n] for i in range(4))
        reset, update, inner = r * (1 - r), z * (1 - z), 1 - candidate * candidate
        came_from = previous(hx, output, batch_sizes, reverse)

        def hidden_part(to_z, to_n):
            """The gradients before the sigmoids and of the hidden part, given those of z and n."""
            to_n = to_n * inner
            return xp.stack([to_n * hidden * reset, to_z * update, to_n * r], 1)

        factors = hidden_part(came_from - candidate, 1 - z)
        direct = None
        if grad_gates is not None:
            to_r, to_z, to_n, to_hidden = (grad_gates[:, i * n : (i + 1) * n] for i in range(4))
            direct = hidden_part(to_z, to_n)
            direct[:, 0] += to_r * reset
            direct[:, 2] += to_hidden
        to_hidden, to_output = xp.empty((rows, 3, n), gates.dtype), xp.empty((rows, n), gates.dtype)
        state = starting(grad_hn, hx)
        for start, stop, size in reversed(packed_steps(batch_sizes, reverse)):
            h, part = state[:size], to_hidden[start:stop]
            if grad_output is not None:
                h += grad_output[start:stop]
            to_output[start:stop] = h
            xp.multiply(factors[start:stop], h[:, None], out=part)
            if direct is not None:
                part += direct[start:stop]
            h *= z[start:stop]
            h += part.reshape(size, 3 * n) @ weight_hh
        to_candidate = to_output * (1 - z)
        if grad_gates is not None:
            to_candidate += to_n
        to_input = to_hidden.copy()
        xp.multiply(to_candidate, inner, out=to_input[:, 2])
        to_input, to_hidden = to_input.reshape(rows, 3 * n), to_hidden.reshape(rows, 3 * n)
        return to_input, state, to_hidden.T @ came_from, to_hidden.sum(0)

    return {
        "gru_sequence": gru_sequence,
        "gru_sequence_backward": gru_sequence_backward,
        "lstm_sequence": lstm_sequence,
        "lstm_sequence_backward": lstm_sequence_backward,
        "rnn_sequence": rnn_sequence,
        "rnn_sequence_backward": rnn_sequence_backward,
    }


def data_movement(xp):
    """Ops that only move elements."""
    return {}
