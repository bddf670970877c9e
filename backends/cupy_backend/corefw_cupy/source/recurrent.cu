// One step of a recurrence after its product with the weight: a thread for each unit of each sequence.

#include "recurrent.cuh"

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

// This unit's part of each gate in a row of gates.
template <int gates> __device__ void read_gates(const T *row, const Unit &of, const Step &step, A (&found)[gates])
{
    for (int gate = 0; gate < gates; ++gate)
        found[gate] = row[gate * step.hidden + of.unit];
}

template <int gates> __device__ void write_gates(T *row, const Unit &of, const Step &step, const A (&values)[gates])
{
    for (int gate = 0; gate < gates; ++gate)
        row[gate * step.hidden + of.unit] = values[gate];
}

// The unit's state at the step before: among the packed rows, or the first one.
__device__ inline A state_before(const Unit &of, const Step &step, const T *rows, const T *first)
{
    return of.sequence < step.known ? rows[(step.before + of.sequence) * step.hidden + of.unit]
                                    : first[of.own];
}

__device__ inline A given(const T *gradient, int64 at)
{
    return gradient ? A(gradient[at]) : 0;
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
    read_gates(input + of.row * 4 * step.hidden, of, step, x);
    read_gates(product + of.sequence * 4 * step.hidden, of, step, w);
    LstmGates now = lstm_gates(x, w);
    A c = now.f * A(cell[of.own]) + now.i * now.g;
    cells[of.at] = cell[of.own] = c;
    output[of.at] = state[of.own] = now.o * tanh(c);
    write_gates(gates + of.row * 4 * step.hidden, of, step, {now.i, now.f, now.g, now.o});
}

extern "C" __global__ void gru_step(Step step, const T *product, const T *input, const T *bias, T *state, T *output,
                                    T *gates)
{
    Unit of(step);
    if (!of.exists)
        return;
    A x[3], w[3];
    read_gates(input + of.row * 3 * step.hidden, of, step, x);
    read_gates(product + of.sequence * 3 * step.hidden, of, step, w);
    for (int gate = 0; gate < 3; ++gate)
        w[gate] += given(bias, gate * step.hidden + of.unit);
    GruGates now = gru_gates(x, w);
    output[of.at] = state[of.own] = (A(state[of.own]) - now.n) * now.z + now.n;
    write_gates(gates + of.row * 4 * step.hidden, of, step, {now.r, now.z, now.n, now.hidden});
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
    A h = A(state[of.own]) + given(grad_output, of.at), y = output[of.at];
    before[of.at] = state_before(of, step, output, hx);
    grad_input[of.at] = h * (tangent ? 1 - y * y : A(y > 0));
}

extern "C" __global__ void lstm_step_backward(Step step, const T *hx, const T *cx, const T *output, const T *gates,
                                              const T *cells, const T *grad_output, const T *grad_gates,
                                              const T *grad_cells, const T *state, T *cell, T *grad_input, T *before)
{
    Unit of(step);
    if (!of.exists)
        return;
    A gate[4], direct[4] = {};
    read_gates(gates + of.row * 4 * step.hidden, of, step, gate);
    if (grad_gates)
        read_gates(grad_gates + of.row * 4 * step.hidden, of, step, direct);
    A i = gate[0], f = gate[1], g = gate[2], o = gate[3], shown = tanh(A(cells[of.at]));
    A h = A(state[of.own]) + given(grad_output, of.at);
    A c = A(cell[of.own]) + given(grad_cells, of.at) + h * o * (1 - shown * shown);
    write_gates(grad_input + of.row * 4 * step.hidden, of, step,
                {(c * g + direct[0]) * i * (1 - i),
                 (c * state_before(of, step, cells, cx) + direct[1]) * f * (1 - f),
                 (c * i + direct[2]) * (1 - g * g), (h * shown + direct[3]) * o * (1 - o)});
    before[of.at] = state_before(of, step, output, hx);
    cell[of.own] = c * f;
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
    A gate[4], direct[4] = {};
    read_gates(gates + of.row * 4 * step.hidden, of, step, gate);
    if (grad_gates)
        read_gates(grad_gates + of.row * 4 * step.hidden, of, step, direct);
    A r = gate[0], z = gate[1], n = gate[2], previous = state_before(of, step, output, hx);
    A h = A(state[of.own]) + given(grad_output, of.at) + (of.sequence < multiplied ? A(product[of.own]) : 0);
    A to_n = (h * (1 - z) + direct[2]) * (1 - n * n);
    A to_r = (to_n * gate[3] + direct[0]) * r * (1 - r), to_z = (h * (previous - n) + direct[1]) * z * (1 - z);
    write_gates(grad_input + of.row * 3 * step.hidden, of, step, {to_r, to_z, to_n});
    write_gates(grad_hidden + of.row * 3 * step.hidden, of, step, {to_r, to_z, to_n * r + direct[3]});
    before[of.at] = previous;
    state[of.own] = h * z;
}

// state += product, for what the last step of all adds.
extern "C" __global__ void add_product(int64 n, const T *product, T *state)
{
    int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        state[i] = A(state[i]) + A(product[i]);
}
