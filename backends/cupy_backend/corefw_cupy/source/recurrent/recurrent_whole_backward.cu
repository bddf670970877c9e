// The gradients of whole recurrences of few hidden units in one launch, as recurrent_whole.cu computes forward.

#include "recurrent/recurrent_whole.cuh"

// Follow the sequences from their ends: `last` is the gradient of the last h, or null for zero, and `state` becomes that
// of the first; `cell` gets a packed row, that of the step before (-1 at the first), and h, gives what is multiplied with
// the weight, and returns what the state before gets besides.
template <int gates, class Cell>
__device__ void follow_back(const Sequences &of, const T *weight, const T *last, T *state, Cell cell)
{
    __shared__ Group gradients[gates * MOST_UNITS];
    __shared__ A parts[SPLITS][SEQUENCES][MOST_UNITS];
    int hidden = of.hidden, unit = threadIdx.x, part = threadIdx.y, rows = gates * hidden;
    int from = rows * part / SPLITS, to = rows * (part + 1) / SPLITS;
    int64 sequence = blockIdx.x * (int64)SEQUENCES + part;
    bool exists = unit < hidden && sequence < of.batch;
    A own = exists ? given(last, sequence * hidden + unit) : 0;
    for (int64 left = of.steps - 1; left >= 0; --left) {
        int64 row = row_of(of, left) + sequence, before = left ? row_of(of, left - 1) + sequence : -1;
        A values[gates] = {}, direct = 0;
        if (exists)
            direct = cell(row, before, own, values);
        if (unit < hidden)
            for (int gate = 0; gate < gates; ++gate)
                gradients[gate * hidden + unit].of[part] = values[gate];
        __syncthreads();
        if (unit < hidden) {
            A sums[SEQUENCES] = {};
#pragma unroll 8
            for (int k = from; k < to; ++k) {
                A factor = weight[k * hidden + unit];
                Group group = gradients[k];
                for (int s = 0; s < SEQUENCES; ++s)
                    sums[s] += factor * group.of[s];
            }
            for (int s = 0; s < SEQUENCES; ++s)
                parts[part][s][unit] = sums[s];
        }
        __syncthreads();
        own = direct;
        if (exists)
            for (int p = 0; p < SPLITS; ++p)
                own += parts[p][part][unit];
    }
    if (exists)
        state[sequence * hidden + unit] = own;
}

// The state of a thread's unit in row `before`, or if there is none the first one.
__device__ inline A state_before(const Sequences &of, int64 before, const T *rows, const T *first)
{
    int64 sequence = blockIdx.x * (int64)SEQUENCES + threadIdx.y;
    return before < 0 ? first[sequence * of.hidden + threadIdx.x] : rows[before * of.hidden + threadIdx.x];
}

extern "C" __global__ void rnn_whole_backward(Sequences of, const T *weight, bool tangent, const T *hx,
                                              const T *output, const T *grad_output, const T *grad_hn, T *state,
                                              T *grad_input, T *states_before)
{
    follow_back<1>(of, weight, grad_hn, state, [=](int64 row, int64 before, A h, A(&to_hidden)[1]) {
        int64 at = row * of.hidden + threadIdx.x;
        states_before[at] = state_before(of, before, output, hx);
        grad_input[at] = to_hidden[0] = rnn_cell_backward(tangent, output[at], h + given(grad_output, at));
        return A(0);
    });
}

extern "C" __global__ void lstm_whole_backward(Sequences of, const T *weight, const T *hx, const T *cx,
                                               const T *output, const T *gates, const T *cells, const T *grad_output,
                                               const T *grad_gates, const T *grad_cells, const T *grad_hn, const T *grad_cn,
                                               T *state, T *cell, T *grad_input, T *states_before)
{
    int64 sequence = blockIdx.x * (int64)SEQUENCES + threadIdx.y, own = sequence * of.hidden + threadIdx.x;
    bool exists = threadIdx.x < of.hidden && sequence < of.batch;
    A c = exists ? given(grad_cn, own) : 0;
    follow_back<4>(of, weight, grad_hn, state, [&](int64 row, int64 before, A h, A(&to_hidden)[4]) {
        int64 at = row * of.hidden + threadIdx.x;
        A saved[4], direct[4] = {};
        read_row(gates + row * 4 * of.hidden, of.hidden, threadIdx.x, saved);
        if (grad_gates)
            read_row(grad_gates + row * 4 * of.hidden, of.hidden, threadIdx.x, direct);
        c += given(grad_cells, at);
        lstm_cell_backward(saved, direct, cells[at], state_before(of, before, cells, cx), h + given(grad_output, at), c,
                           to_hidden);
        write_row(grad_input + row * 4 * of.hidden, of.hidden, threadIdx.x, to_hidden);
        states_before[at] = state_before(of, before, output, hx);
        return A(0);
    });
    if (exists)
        cell[own] = c;
}

extern "C" __global__ void gru_whole_backward(Sequences of, const T *weight, const T *hx, const T *output,
                                              const T *gates, const T *grad_output, const T *grad_gates,
                                              const T *grad_hn, T *state, T *grad_input, T *grad_hidden,
                                              T *states_before)
{
    follow_back<3>(of, weight, grad_hn, state, [=](int64 row, int64 before, A h, A(&to_hidden)[3]) {
        int64 at = row * of.hidden + threadIdx.x;
        A saved[4], direct[4] = {}, to_input[3], previous = state_before(of, before, output, hx);
        read_row(gates + row * 4 * of.hidden, of.hidden, threadIdx.x, saved);
        if (grad_gates)
            read_row(grad_gates + row * 4 * of.hidden, of.hidden, threadIdx.x, direct);
        h += given(grad_output, at);
        gru_cell_backward(saved, direct, previous, h, to_input, to_hidden);
        write_row(grad_input + row * 3 * of.hidden, of.hidden, threadIdx.x, to_input);
        write_row(grad_hidden + row * 3 * of.hidden, of.hidden, threadIdx.x, to_hidden);
        states_before[at] = previous;
        return h * saved[1];
    });
}
