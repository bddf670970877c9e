// Cells of recurrent networks: one unit of one sequence at one step, forward and back. Names are those of
// `corefw.ops.recurrent`: h and c are states, x is the input's part of the gates, w the weight times the state.

#include "types.cuh"
#include "mathematics.cuh"

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
