// One step of a recurrence after its product with the weight: a thread for each unit of each sequence.

#include "recurrent/recurrent.cuh"

// The unit and the sequence of a thread, and where they lie.
struct Unit {
    int64 sequence, unit, row; // row: of packed arrays
    int64 own, at;             // elements of states, and of packed arrays of states
    bool exists;

    __device__ Unit(const Step &step)
    {
        int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
        sequence = i / step.hidden;
        unit = i % step.hidden;
        row = step.start + sequence;
        own = i;
        at = row * step.hidden + unit;
        exists = sequence < step.size;
    }
};

// The unit's state at the step before: among the packed rows, or the first one.
__device__ inline A state_before(const Unit &of, const Step &step, const T *rows, const T *first)
{
    return of.sequence < step.known ? rows[(step.before + of.sequence) * step.hidden + of.unit] : first[of.own];
}

// -- forward ---------------------------------------------------------------------------------------------------------
// `product` is the weight times the states, a row per sequence.
extern "C" __global__ void rnn_step(Step step, const T *product, const T *input, bool tangent, T *state, T *output)
{
    Unit of(step);
    if (!of.exists)
        return;
    output[of.at] = state[of.own] = rnn_cell(tangent, input[of.at], product[of.own]);
}

extern "C" __global__ void lstm_step(Step step, const T *product, const T *input, T *state, T *cell, T *output,
                                     T *gates, T *cells)
{
    Unit of(step);
    if (!of.exists)
        return;
    A x[4], w[4];
    read_row(input + of.row * 4 * step.hidden, step.hidden, of.unit, x);
    read_row(product + of.sequence * 4 * step.hidden, step.hidden, of.unit, w);
    LstmGates now = lstm_gates(x, w);
    A c = now.f * A(cell[of.own]) + now.i * now.g;
    cells[of.at] = cell[of.own] = c;
    output[of.at] = state[of.own] = now.o * tanh(c);
    write_row(gates + of.row * 4 * step.hidden, step.hidden, of.unit, {now.i, now.f, now.g, now.o});
}

extern "C" __global__ void gru_step(Step step, const T *product, const T *input, const T *bias, T *state, T *output,
                                    T *gates)
{
    Unit of(step);
    if (!of.exists)
        return;
    A x[3], w[3];
    read_row(input + of.row * 3 * step.hidden, step.hidden, of.unit, x);
    read_row(product + of.sequence * 3 * step.hidden, step.hidden, of.unit, w);
    for (int gate = 0; gate < 3; ++gate)
        w[gate] += given(bias, gate * step.hidden + of.unit);
    GruGates now = gru_gates(x, w);
    output[of.at] = state[of.own] = (A(state[of.own]) - now.n) * now.z + now.n;
    write_row(gates + of.row * 4 * step.hidden, step.hidden, of.unit, {now.r, now.z, now.n, now.hidden});
}

// -- back ------------------------------------------------------------------------------------------------------------
// `state` and `cell` are the gradients of h and c so far; `before` receives the states before the step, with which the
// weight's gradient is computed.
extern "C" __global__ void rnn_step_backward(Step step, bool tangent, const T *hx, const T *output,
                                             const T *grad_output, const T *state, T *grad_input, T *before)
{
    Unit of(step);
    if (!of.exists)
        return;
    A h = A(state[of.own]) + given(grad_output, of.at);
    before[of.at] = state_before(of, step, output, hx);
    grad_input[of.at] = rnn_cell_backward(tangent, output[of.at], h);
}

extern "C" __global__ void lstm_step_backward(Step step, const T *hx, const T *cx, const T *output, const T *gates,
                                              const T *cells, const T *grad_output, const T *grad_gates,
                                              const T *grad_cells, const T *state, T *cell, T *grad_input, T *before)
{
    Unit of(step);
    if (!of.exists)
        return;
    A saved[4], direct[4] = {}, to_input[4];
    read_row(gates + of.row * 4 * step.hidden, step.hidden, of.unit, saved);
    if (grad_gates)
        read_row(grad_gates + of.row * 4 * step.hidden, step.hidden, of.unit, direct);
    A h = A(state[of.own]) + given(grad_output, of.at), c = A(cell[of.own]) + given(grad_cells, of.at);
    lstm_cell_backward(saved, direct, cells[of.at], state_before(of, step, cells, cx), h, c, to_input);
    write_row(grad_input + of.row * 4 * step.hidden, step.hidden, of.unit, to_input);
    before[of.at] = state_before(of, step, output, hx);
    cell[of.own] = c;
}

// Of a sequence among the first `multiplied`, `product` holds what the step after this one adds to the state's
// gradient. `grad_hidden` differs from `grad_input` in what belongs to n.
extern "C" __global__ void gru_step_backward(Step step, int64 multiplied, const T *hx, const T *output, const T *gates,
                                             const T *grad_output, const T *grad_gates, const T *product, T *state,
                                             T *grad_input, T *grad_hidden, T *before)
{
    Unit of(step);
    if (!of.exists)
        return;
    A saved[4], direct[4] = {}, to_input[3], to_hidden[3], previous = state_before(of, step, output, hx);
    read_row(gates + of.row * 4 * step.hidden, step.hidden, of.unit, saved);
    if (grad_gates)
        read_row(grad_gates + of.row * 4 * step.hidden, step.hidden, of.unit, direct);
    A h = A(state[of.own]) + given(grad_output, of.at) + (of.sequence < multiplied ? A(product[of.own]) : 0);
    gru_cell_backward(saved, direct, previous, h, to_input, to_hidden);
    write_row(grad_input + of.row * 3 * step.hidden, step.hidden, of.unit, to_input);
    write_row(grad_hidden + of.row * 3 * step.hidden, step.hidden, of.unit, to_hidden);
    before[of.at] = previous;
    state[of.own] = h * saved[1];
}

// state += product, for what the last step of all adds.
extern "C" __global__ void add_product(int64 n, const T *product, T *state)
{
    int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        state[i] = A(state[i]) + A(product[i]);
}
