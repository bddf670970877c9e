// Cells of recurrent networks: one unit of one sequence at one step, forward and back. Names are those of
// `corefw.declarations.recurrent`: h and c are states, x is the input's part of the gates, w the weight times the state.

#include "core/types.cuh"
#include "core/mathematics.cuh"

typedef Compute<T>::type A;

// The step of a recurrence that a kernel computes: rows from `start` on, one for each of `size` sequences.
struct Step {
    int64 hidden, start, size; // hidden: units of a state
    int64 before, known;       // first row of the step before it, which has that many of these sequences
};

__device__ inline A rectified(A x)
{
    return x < 0 ? 0 : x; // NaN stays
}

// h = f(x + w).
__device__ inline A rnn_cell(bool tangent, A x, A w)
{
    return tangent ? tanh(x + w) : rectified(x + w);
}

// (i, f, g, o) of a unit.
struct LstmGates {
    A i, f, g, o;
};

__device__ inline LstmGates lstm_gates(const A (&x)[4], const A (&w)[4])
{
    return {sigmoid(x[0] + w[0]), sigmoid(x[1] + w[1]), tanh(x[2] + w[2]), sigmoid(x[3] + w[3])};
}

// (r, z, n, h_n) of a unit.
struct GruGates {
    A r, z, n, hidden;
};

__device__ inline GruGates gru_gates(const A (&x)[3], const A (&w)[3])
{
    A r = sigmoid(x[0] + w[0]);
    return {r, sigmoid(x[1] + w[1]), tanh(x[2] + r * w[2]), w[2]};
}

// What a gradient that may be missing holds.
__device__ inline A given(const T *gradient, int64 at)
{
    return gradient ? A(gradient[at]) : 0;
}

// The gradients before the nonlinearities, from the gradient h of a state y.
__device__ inline A rnn_cell_backward(bool tangent, A y, A h)
{
    return h * (tangent ? 1 - y * y : A(y > 0));
}

// `direct` are gradients of the gates themselves, h and c those of the states, of which c becomes that of the state
// before; `now` and `before` are values of c.
__device__ inline void lstm_cell_backward(const A (&gates)[4], const A (&direct)[4], A now, A before, A h, A &c,
                                          A (&to_input)[4])
{
    A i = gates[0], f = gates[1], g = gates[2], o = gates[3], shown = tanh(now);
    c += h * o * (1 - shown * shown);
    to_input[0] = (c * g + direct[0]) * i * (1 - i);
    to_input[1] = (c * before + direct[1]) * f * (1 - f);
    to_input[2] = (c * i + direct[2]) * (1 - g * g);
    to_input[3] = (h * shown + direct[3]) * o * (1 - o);
    c *= f;
}

// `before` is the value of h before the step. What the product with the weight gets differs from what the input gets
// in the last gate.
__device__ inline void gru_cell_backward(const A (&gates)[4], const A (&direct)[4], A before, A h, A (&to_input)[3],
                                         A (&to_hidden)[3])
{
    A r = gates[0], z = gates[1], n = gates[2];
    A to_n = (h * (1 - z) + direct[2]) * (1 - n * n);
    to_input[0] = to_hidden[0] = (to_n * gates[3] + direct[0]) * r * (1 - r);
    to_input[1] = to_hidden[1] = (h * (before - n) + direct[1]) * z * (1 - z);
    to_input[2] = to_n;
    to_hidden[2] = to_n * r + direct[3];
}

// Numbers of a row side by side, `hidden` apart.
template <int gates> __device__ void read_row(const T *row, int64 hidden, int64 unit, A (&found)[gates])
{
    for (int gate = 0; gate < gates; ++gate)
        found[gate] = row[gate * hidden + unit];
}
template <int gates> __device__ void write_row(T *row, int64 hidden, int64 unit, const A (&values)[gates])
{
    for (int gate = 0; gate < gates; ++gate)
        row[gate * hidden + unit] = values[gate];
}
