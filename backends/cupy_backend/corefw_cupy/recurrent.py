"""Recurrent networks: a product with the weight and a fused cell per step, everything else at once."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from corefw.dispatch.backend import Kernel
from corefw.shapes import packed_steps
from corefw_cupy.cuda import Cuda
from corefw_cupy.launch import FLOATS, HALVES, THREADS, argument, blocks, offered
from corefw_cupy.products import AS_IT_IS, TRANSPOSED, Products

STEP = np.dtype([(name, "i8") for name in ("hidden", "start", "size", "before", "known")])  # as in recurrent.cuh
SEQUENCES = np.dtype([(name, "i8") for name in ("steps", "batch", "hidden", "reverse")])  # as in recurrent_whole.cu
WHOLE = {np.dtype(np.float32): "float32", **HALVES}  # what recurrent_whole.cu has shared memory for
BLOCK_SEQUENCES, MOST_UNITS = 4, 128  # of a block there
MOST_SEQUENCES = 1024  # beyond them, products by cuBLAS are worth their launches


def fits_whole(dtype: np.dtype, hidden: int, batch_sizes: tuple[int, ...]) -> bool:
    """Whether a recurrence is computed in one launch."""
    batch = batch_sizes[0]
    return dtype in WHOLE and hidden <= MOST_UNITS and batch == batch_sizes[-1] <= MOST_SEQUENCES


def check(hx, weight_hh, batch_sizes, gates: int, states, packed) -> None:
    """Refuse what does not fit together; `packed` is of (array, its columns per hidden unit)."""
    rows, n = sum(batch_sizes), hx.shape[1]
    wanted = [(hx, (batch_sizes[0], n)), (weight_hh, (gates * n, n))]
    wanted += [(state, hx.shape) for state in states] + [(array, (rows, width * n)) for array, width in packed]
    given = [(array, shape) for array, shape in wanted if array is not None]
    if any(array.shape != shape or array.dtype != hx.dtype for array, shape in given):
        raise ValueError(f"{[(array.shape, array.dtype) for array, _ in given]}")
    if any(after > before for before, after in pairwise(batch_sizes)):
        raise ValueError(f"batch sizes {batch_sizes} grow")


@lru_cache(maxsize=1 << 8)
def steps_of(hidden: int, batch_sizes: tuple[int, ...], reverse: bool) -> list[tuple[Any, int, int]]:
    """The struct Step, the first row and the number of rows of each step, as a recurrence visits them."""
    steps = [(start, size) for start, _, size in packed_steps(batch_sizes, reverse) if size * hidden]
    before = [(0, 0), *steps[:-1]]
    values = [(hidden, *step, start, min(size, step[1])) for step, (start, size) in zip(steps, before)]
    return [(argument(np.array([value], STEP)), *value[1:3]) for value in values]


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""
    empty, copying, multiply = cuda.empty, cuda.copying, Products(cuda)

    def function(name):
        return cuda.function("recurrent/recurrent.cu", name, T=FLOATS)

    rnn_step, rnn_step_backward = function("rnn_step"), function("rnn_step_backward")
    lstm_step, lstm_step_backward = function("lstm_step"), function("lstm_step_backward")
    gru_step, gru_step_backward = function("gru_step"), function("gru_step_backward")
    add_product = function("add_product")

    def whole(name, file="recurrent/recurrent_whole.cu"):
        return cuda.function(file, name, T=WHOLE)

    rnn_whole, lstm_whole, gru_whole = whole("rnn_whole"), whole("lstm_whole"), whole("gru_whole")
    rnn_whole_backward, lstm_whole_backward, gru_whole_backward = (
        whole(f"{kind}_whole_backward", "recurrent/recurrent_whole_backward.cu") for kind in ("rnn", "lstm", "gru")
    )

    def dense(*arrays):
        """The arrays as kernels read them; 0 where there is none."""
        return [0 if array is None else cuda.dense(array) for array in arrays]

    def run(launch, state, weight, batch_sizes, reverse, arguments):
        """Forward: `launch` gets the step, `arguments` and the product of state and weight."""
        batch, hidden = state.shape
        product, transposed = empty((batch, weight.shape[0]), state.dtype), weight.transpose()
        for step, _, size in steps_of(hidden, batch_sizes, reverse):
            rows, result = (state[:size], product[:size]) if size < batch else (state, product)
            multiply(rows, transposed, out=result)
            launch(blocks(size * hidden), (THREADS,), (step, product, *arguments))

    def launch_whole(functions, weight, state, batch_sizes, reverse, arguments):
        """All steps in one launch."""
        batch, hidden = state.shape
        if state.size:
            of = argument(np.array([(len(batch_sizes), batch, hidden, reverse)], SEQUENCES))
            threads = -(-hidden // 32) * 32, BLOCK_SEQUENCES
            functions[state.dtype](blocks(batch, BLOCK_SEQUENCES), threads, (of, weight, *arguments))

    def follow(step, whole, firsts, weight, batch_sizes, reverse, read, written):
        """Forward, from the first states; the last ones."""
        state, dtype = firsts[0], weight.dtype
        if fits_whole(dtype, state.shape[1], batch_sizes):
            states = [empty(state.shape, dtype) for _ in firsts]
            arguments = *read, *dense(*firsts), *states, *written
            launch_whole(whole, copying.dense(weight.transpose()), state, batch_sizes, reverse, arguments)
        else:
            states = [copying.dense(first) for first in firsts]
            run(step[dtype], states[0], weight, batch_sizes, reverse, (*read, *states, *written))
        return states

    def follow_back(step, whole, lasts, weight, batch_sizes, reverse, read, written, to_hidden):
        """Back, from the gradients of the last states, None for zero; those of the first ones. `to_hidden` receives
        what is multiplied with the weight."""
        (_, hidden), dtype, batch = weight.shape, weight.dtype, batch_sizes[0]
        if fits_whole(dtype, hidden, batch_sizes):
            states = [empty((batch, hidden), dtype) for _ in lasts]
            arguments = *read, *dense(*lasts), *states, *written
            launch_whole(whole, weight, states[0], batch_sizes, reverse, arguments)
            return states
        states = [starting(last, (batch, hidden), dtype) for last in lasts]
        launch, state = step[dtype], states[0]
        for of, start, size in reversed(steps_of(hidden, batch_sizes, reverse)):
            launch(blocks(size * hidden), (THREADS,), (of, *read, *states, *written))
            multiply(to_hidden[start : start + size], weight, out=state[:size])
        return states

    def starting(first, shape, dtype):
        """Memory that starts with a state, or the gradient of one."""
        return copying.full(shape, 0, dtype) if first is None else copying.dense(first)

    def of_weight(gradients, before):
        """The gradient of the weight, from those of its products and the states that were multiplied."""
        return multiply(gradients, before, (TRANSPOSED, AS_IT_IS))

    def rnn_sequence(input, hx, weight_hh, batch_sizes, reverse, nonlinearity):
        check(hx, weight_hh, batch_sizes, 1, (), ((input, 1),))
        (weight, input), output = dense(weight_hh, input), empty(input.shape, input.dtype)
        read = input, nonlinearity == "tanh"
        (state,) = follow(rnn_step, rnn_whole, [hx], weight, batch_sizes, reverse, read, (output,))
        return output, state

    def rnn_sequence_backward(
        hx, weight_hh, output, batch_sizes, reverse, nonlinearity, grad_output=None, grad_hn=None
    ):
        check(hx, weight_hh, batch_sizes, 1, (grad_hn,), ((output, 1), (grad_output, 1)))
        hx, weight, output, grad_output = dense(hx, weight_hh, output, grad_output)
        written = to_input, before = empty(output.shape, hx.dtype), empty(output.shape, hx.dtype)
        functions, read = (rnn_step_backward, rnn_whole_backward), (nonlinearity == "tanh", hx, output, grad_output)
        (state,) = follow_back(*functions, [grad_hn], weight, batch_sizes, reverse, read, written, to_input)
        return to_input, state, of_weight(to_input, before)

    def lstm_sequence(input, hx, cx, weight_hh, batch_sizes, reverse):
        check(hx, weight_hh, batch_sizes, 4, (cx,), ((input, 4),))
        rows, dtype = (input.shape[0], hx.shape[1]), input.dtype
        written = output, gates, cells = empty(rows, dtype), empty(input.shape, dtype), empty(rows, dtype)
        weight, input = dense(weight_hh, input)
        state, cell = follow(lstm_step, lstm_whole, [hx, cx], weight, batch_sizes, reverse, (input,), written)
        return output, state, cell, gates, cells

    def lstm_sequence_backward(hx, cx, weight_hh, output, gates, cells, batch_sizes, reverse, *gradients):
        grad_output, grad_hn, grad_cn, grad_gates, grad_cells = gradients
        of_rows = (output, 1), (gates, 4), (cells, 1), (grad_output, 1), (grad_gates, 4), (grad_cells, 1)
        check(hx, weight_hh, batch_sizes, 4, (cx, grad_hn, grad_cn), of_rows)
        written = to_input, before = empty(gates.shape, hx.dtype), empty(output.shape, hx.dtype)
        weight, *read = dense(weight_hh, hx, cx, output, gates, cells, grad_output, grad_gates, grad_cells)
        functions, lasts = (lstm_step_backward, lstm_whole_backward), [grad_hn, grad_cn]
        state, cell = follow_back(*functions, lasts, weight, batch_sizes, reverse, read, written, to_input)
        return to_input, state, cell, of_weight(to_input, before)

    def gru_sequence(input, hx, weight_hh, batch_sizes, reverse, bias_hh=None):
        check(hx, weight_hh, batch_sizes, 3, (), ((input, 3),))
        if bias_hh is not None and (bias_hh.shape != weight_hh.shape[:1] or bias_hh.dtype != hx.dtype):
            raise ValueError(f"bias of shape {bias_hh.shape} for a weight of shape {weight_hh.shape}")
        (rows, _), hidden, dtype = input.shape, hx.shape[1], input.dtype
        written = output, gates = empty((rows, hidden), dtype), empty((rows, 4 * hidden), dtype)
        weight, *read = dense(weight_hh, input, bias_hh)
        (state,) = follow(gru_step, gru_whole, [hx], weight, batch_sizes, reverse, read, written)
        return output, state, gates

    def gru_sequence_backward(
        hx, weight_hh, output, gates, batch_sizes, reverse, grad_output=None, grad_hn=None, grad_gates=None
    ):
        packed = (output, 1), (gates, 4), (grad_output, 1), (grad_gates, 4)
        check(hx, weight_hh, batch_sizes, 3, (grad_hn,), packed)
        (rows, hidden), dtype = output.shape, hx.dtype
        to_input, to_hidden = empty((rows, 3 * hidden), dtype), empty((rows, 3 * hidden), dtype)
        before, (weight,) = empty(output.shape, dtype), dense(weight_hh)
        read, written = dense(hx, output, gates, grad_output, grad_gates), (to_input, to_hidden, before)
        if fits_whole(dtype, hidden, batch_sizes):
            state = empty(hx.shape, dtype)
            arguments = *read, *dense(grad_hn), state, *written
            launch_whole(gru_whole_backward, weight, state, batch_sizes, reverse, arguments)
        else:
            state = starting(grad_hn, hx.shape, dtype)
            launch, product, multiplied = gru_step_backward[dtype], empty(hx.shape, dtype), 0
            for step, start, size in reversed(steps_of(hidden, batch_sizes, reverse)):
                launch(blocks(size * hidden), (THREADS,), (step, multiplied, *read, product, state, *written))
                multiply(to_hidden[start : start + size], weight, out=product[:size])
                multiplied = max(multiplied, size)
            if n := multiplied * hidden:
                add_product[dtype](blocks(n), (THREADS,), (n, product, state))
        return to_input, state, *multiply.with_sums(to_hidden, before)

    forward = gru_sequence, lstm_sequence, rnn_sequence
    backward = gru_sequence_backward, lstm_sequence_backward, rnn_sequence_backward
    return [Kernel(kernel.__name__, kernel, offered(FLOATS)) for kernel in (*forward, *backward)]
