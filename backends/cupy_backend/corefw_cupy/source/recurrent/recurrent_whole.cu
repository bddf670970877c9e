// Whole recurrences of few hidden units in one launch: a block follows 4 sequences through all steps, with their states
// in shared memory. The weight is read again at each step, from the caches. All sequences are equally long.

#include "recurrent/recurrent_whole.cuh"

// Follow the sequences from the state `first` to the last one: `weight` is transposed, (hidden, gates, hidden); `cell`
// gets a packed row, the thread's unit, x, w and h, and gives the new h.
template <int gates, class Cell>
__device__ void follow(const Sequences &of, const T *weight, const T *input, const T *first, T *last, T *output,
                       Cell cell)
{
    __shared__ Group h[MOST_UNITS];
    __shared__ A parts[SPLITS][gates][SEQUENCES][MOST_UNITS];
    int hidden = of.hidden, unit = threadIdx.x, part = threadIdx.y;
    int from = hidden * part / SPLITS, to = hidden * (part + 1) / SPLITS;
    int64 sequence = blockIdx.x * (int64)SEQUENCES + part;
    bool exists = unit < hidden && sequence < of.batch;
    A own = exists ? A(first[sequence * hidden + unit]) : 0;
    if (unit < hidden)
        h[unit].of[part] = own;
    for (int64 step = 0; step < of.steps; ++step) {
        int64 row = row_of(of, step) + sequence;
        A x[gates] = {}, w[gates] = {}, sums[gates][SEQUENCES] = {};
        if (exists)
            for (int gate = 0; gate < gates; ++gate)
                x[gate] = input[(row * gates + gate) * hidden + unit];
        __syncthreads(); // h is there
        if (unit < hidden) {
#pragma unroll 4
            for (int k = from; k < to; ++k) {
                Group states = h[k];
                for (int gate = 0; gate < gates; ++gate) {
                    A factor = weight[(k * gates + gate) * hidden + unit];
                    for (int s = 0; s < SEQUENCES; ++s)
                        sums[gate][s] += factor * states.of[s];
                }
            }
            for (int gate = 0; gate < gates; ++gate)
                for (int s = 0; s < SEQUENCES; ++s)
                    parts[part][gate][s][unit] = sums[gate][s];
        }
        __syncthreads();
        if (exists) {
            for (int gate = 0; gate < gates; ++gate)
                for (int p = 0; p < SPLITS; ++p)
                    w[gate] += parts[p][gate][part][unit];
            own = cell(row, unit, x, w, own);
            output[row * hidden + unit] = own;
            h[unit].of[part] = own;
        }
    }
    if (exists)
        last[sequence * hidden + unit] = own;
}

extern "C" __global__ void rnn_whole(Sequences of, const T *weight, const T *input, bool tangent, const T *hx,
                                     T *state, T *output)
{
    follow<1>(of, weight, input, hx, state, output, [=](int64 row, int unit, const A(&x)[1], const A(&w)[1], A h) {
        return rnn_cell(tangent, x[0], w[0]);
    });
}

extern "C" __global__ void lstm_whole(Sequences of, const T *weight, const T *input, const T *hx, const T *cx,
                                      T *state, T *cell, T *output, T *gates, T *cells)
{
    int64 sequence = blockIdx.x * (int64)SEQUENCES + threadIdx.y, at = sequence * of.hidden + threadIdx.x;
    bool exists = threadIdx.x < of.hidden && sequence < of.batch;
    A c = exists ? A(cx[at]) : 0;
    follow<4>(of, weight, input, hx, state, output, [&](int64 row, int unit, const A(&x)[4], const A(&w)[4], A h) {
        LstmGates now = lstm_gates(x, w);
        cells[row * of.hidden + unit] = c = now.f * c + now.i * now.g;
        write_row(gates + row * 4 * of.hidden, of.hidden, unit, {now.i, now.f, now.g, now.o});
        return now.o * tanh(c);
    });
    if (exists)
        cell[at] = c;
}

extern "C" __global__ void gru_whole(Sequences of, const T *weight, const T *input, const T *bias, const T *hx,
                                     T *state, T *output, T *gates)
{
    A added[3] = {};
    if (bias && threadIdx.x < of.hidden)
        for (int gate = 0; gate < 3; ++gate)
            added[gate] = bias[gate * of.hidden + threadIdx.x];
    follow<3>(of, weight, input, hx, state, output, [&](int64 row, int unit, const A(&x)[3], const A(&w)[3], A h) {
        GruGates now = gru_gates(x, {w[0] + added[0], w[1] + added[1], w[2] + added[2]});
        write_row(gates + row * 4 * of.hidden, of.hidden, unit, {now.r, now.z, now.n, now.hidden});
        return (h - now.n) * now.z + now.n;
    });
}
