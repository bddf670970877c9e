"""Recurrent networks."""

from corefw.dispatch.backend import Kernel
from corefw_c.arrays import FLOATS, dense, empty
from corefw_c.library import fail

NONLINEARITIES = {"relu": 0, "tanh": 1}
LSTM, GRU = 2, 3  # kinds of recurrences, as C numbers them


def kernels(lib):
    """The family's kernels."""

    def call(op, function, kind, batch_sizes, reverse, given, results):
        """Run `function` on the arrays `given` and fill `results`; either may hold None."""
        given = [None if array is None else dense(array) for array in given]  # kept alive by this name
        addresses = [0 if array is None else id(array) for array in (*given, *results)]
        if status := function(kind, len(batch_sizes), batch_sizes, reverse, lib.products, *addresses):
            fail(op, status)
        return tuple(result for result in results if result is not None)

    def like(*arrays):
        """New arrays as large as these."""
        return [empty(array.shape, array.dtype) for array in arrays]

    def rnn_sequence(input, hx, weight_hh, batch_sizes, reverse, nonlinearity):
        given = input, hx, None, weight_hh, None
        results = *like(input, hx), None, None, None
        kind = NONLINEARITIES[nonlinearity]
        return call("rnn_sequence", lib.recurrence, kind, batch_sizes, reverse, given, results)

    def rnn_sequence_backward(
        hx, weight_hh, output, batch_sizes, reverse, nonlinearity, grad_output=None, grad_hn=None
    ):
        given = hx, None, weight_hh, output, None, None, grad_output, grad_hn, None, None, None
        input, state, weight = like(output, hx, weight_hh)
        results, kind = (input, state, None, weight, None), NONLINEARITIES[nonlinearity]
        return call("rnn_sequence_backward", lib.recurrence_backward, kind, batch_sizes, reverse, given, results)

    def lstm_sequence(input, hx, cx, weight_hh, batch_sizes, reverse):
        rows = empty((input.shape[0], hx.shape[1]), input.dtype)
        results = rows, *like(hx, cx, input, rows)
        given = input, hx, cx, weight_hh, None
        return call("lstm_sequence", lib.recurrence, LSTM, batch_sizes, reverse, given, results)

    def lstm_sequence_backward(hx, cx, weight_hh, output, gates, cells, batch_sizes, reverse, *gradients):
        given = hx, cx, weight_hh, output, gates, cells, *gradients
        results = *like(gates, hx, cx, weight_hh), None
        return call("lstm_sequence_backward", lib.recurrence_backward, LSTM, batch_sizes, reverse, given, results)

    def gru_sequence(input, hx, weight_hh, batch_sizes, reverse, bias_hh=None):
        rows, n = input.shape[0], hx.shape[1]
        output, gates = empty((rows, n), input.dtype), empty((rows, 4 * n), input.dtype)
        given, results = (input, hx, None, weight_hh, bias_hh), (output, *like(hx), None, gates, None)
        return call("gru_sequence", lib.recurrence, GRU, batch_sizes, reverse, given, results)

    def gru_sequence_backward(
        hx, weight_hh, output, gates, batch_sizes, reverse, grad_output=None, grad_hn=None, grad_gates=None
    ):
        rows, columns, dtype = output.shape[0], weight_hh.shape[0], output.dtype
        input, bias = empty((rows, columns), dtype), empty(columns, dtype)
        given = hx, None, weight_hh, output, gates, None, grad_output, grad_hn, None, grad_gates, None
        state, weight = like(hx, weight_hh)
        results = input, state, None, weight, bias
        return call("gru_sequence_backward", lib.recurrence_backward, GRU, batch_sizes, reverse, given, results)

    functions = (
        gru_sequence,
        gru_sequence_backward,
        lstm_sequence,
        lstm_sequence_backward,
        rnn_sequence,
        rnn_sequence_backward,
    )
    return [Kernel(function.__name__, function, FLOATS) for function in functions]
