// The gradients of attention of half types by tensor cores, five products, as attention_backward.cu computes them. A
// block owns tiles of keys, whose dK and dV it holds; tiles of queries pass, the next one on its way while one is
// multiplied. Shared memory (attention.py) holds OWN keys and values, two times OTHER queries and gradients, and dSᵀ.

#include "attention/attention_fragments.cuh"

const int OWN = 16 * WARPS, OTHER = 32; // keys of a block's own tile, and queries that pass at once
const int SCORES_PITCH = OTHER + 8;     // of rows of dSᵀ

// Add `factor` times what a tile of keys contributes to the dQ of OTHER queries, of which the first `known` exist. Two
// warps share a strip of queries, and take turns with its columns.
__device__ inline void add_to_queries(const T *of_scores, const T *keys, float factor, float *to, int64 stride,
                                      int64 known, int64 width)
{
    int lane = threadIdx.x % WARP, strip = threadIdx.x / WARP % 2 * 16, side = threadIdx.x / WARP / 2 * 16;
    const T *left = of_scores + (lane / 16 * 8 + lane % 8) * SCORES_PITCH + strip + lane / 8 % 2 * 8;
    const T *right = keys + lane % 16 * PITCH + side + lane / 16 * 8;
    int row = strip + lane / 4, first = side + column_of(0, 0);
    float *rows[2] = {to + row * stride + first, to + (row + 8) * stride + first};
    uint32 scores[OWN / 16][4];
#pragma unroll
    for (int k = 0; k < OWN / 16; ++k)
        load_fragments<true>(scores[k], left + k * 16 * SCORES_PITCH);
#pragma unroll
    for (int column = 0; column < D; column += WARPS / 2 * 16) {
        if (side + column >= D)
            break;
        float sums[2][4] = {};
#pragma unroll
        for (int k = 0; k < OWN / 16; ++k) {
            uint32 found[4];
            load_fragments<true>(found, right + k * 16 * PITCH + column);
            multiply_fragments<T>(sums[0], scores[k], {found[0], found[1]});
            multiply_fragments<T>(sums[1], scores[k], {found[2], found[3]});
        }
#pragma unroll
        for (int n = 0; n < 2; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                int at = column + n * 8 + i % 2;
                if (row + i / 2 * 8 < known && first + at < width)
                    atomicAdd(rows[i / 2] + at, sums[n][i] * factor);
            }
    }
}

// The grid has a number of blocks for each head, which take turns with its tiles of keys, and as many share each of the
// `buffers` of dQ.
extern "C" __global__ void __launch_bounds__(FRAGMENT_THREADS, 2)
    attention_backward(const T *gradient, const T *query, const T *key, const T *value, const T *bias,
                       const float *logsumexp, const float *averages, Attention of, bool causal, double scale,
                       float *grad_query, int64 buffers, T *grad_key, T *grad_value)
{
    DYNAMIC_SHARED(T, own_keys);
    T *own_values = own_keys + OWN * PITCH, *passing = own_values + OWN * PITCH;
    T *of_scores = passing + 4 * OTHER * PITCH;
    __shared__ float logarithms[2][OTHER], averages_of[2][OTHER]; // of the queries that pass
    uint32 heads = of.heads, head = blockIdx.x % heads, turn = blockIdx.x / heads;
    Rows queries = rows_of(of, of.query, query, head, of.queries, of.width);
    Rows gradients = rows_of(of, of.gradient, gradient, head, of.queries, of.value_width);
    Scores scores = scores_of(of, bias, head, causal, scale);
    logsumexp += head * of.queries;
    averages += head * of.queries;
    grad_query += turn % (uint32)buffers * of.heads * of.queries * of.width;
    grad_query = matrix_of(of, of.grad_query, grad_query, head);

    auto load = [&](int64 begin, int which) {
        T *tile = passing + which * 2 * OTHER * PITCH;
        load_tile(queries.from(begin), OTHER, tile);
        load_tile(gradients.from(begin), OTHER, tile + OTHER * PITCH);
        if (threadIdx.x < OTHER) {
            bool exists = begin + threadIdx.x < of.queries;
            logarithms[which][threadIdx.x] = exists ? logsumexp[begin + threadIdx.x] * LOG2_E : 0;
            averages_of[which][threadIdx.x] = exists ? averages[begin + threadIdx.x] : 0;
        }
    };
    for (int64 first = turn * (int64)OWN; first < of.keys; first += gridDim.x / heads * (int64)OWN) {
        int row = own_row<1>(), which = 0;
        int64 begin = causal ? first : 0;
        float of_keys[1][D / 8][4] = {}, of_values[1][D / 8][4] = {}; // dK and dV
        load_tile(rows_of(of, of.key, key, head, of.keys, of.width).from(first), OWN, own_keys);
        load_tile(rows_of(of, of.value, value, head, of.keys, of.value_width).from(first), OWN, own_values);
        load(begin, which);
        for (; begin < of.queries; begin += OTHER, which ^= 1) {
            const T *query_tile = passing + which * 2 * OTHER * PITCH, *gradient_tile = query_tile + OTHER * PITCH;
            float weights[1][OTHER / 8][4], changes[1][OTHER / 8][4];
            wait_for_copies<0>();
            __syncthreads(); // this tile is there, and the one before is done with
            load(begin + OTHER, which ^ 1);
            multiply_rows(own_keys, query_tile, weights);
            score<true>(scores, first + row, begin, of.queries, weights[0]);
#pragma unroll
            for (int n = 0; n < OTHER / 8; ++n)
                for (int i = 0; i < 4; ++i)
                    weights[0][n][i] = exp2f(weights[0][n][i] - logarithms[which][column_of(n, i)]);
            multiply_weights(weights, gradient_tile, of_values);
            multiply_rows(own_values, gradient_tile, changes);
#pragma unroll
            for (int n = 0; n < OTHER / 8; ++n) {
                for (int i = 0; i < 4; ++i)
                    changes[0][n][i] = weights[0][n][i] * (changes[0][n][i] - averages_of[which][column_of(n, i)]);
                for (int half = 0; half < 2; ++half)
                    *(uint32 *)(of_scores + (row + 8 * half) * SCORES_PITCH + column_of(n, 0))
                        = pack<T>(changes[0][n][2 * half], changes[0][n][2 * half + 1]);
            }
            multiply_weights(changes, query_tile, of_keys);
            __syncthreads(); // dSᵀ is there
            add_to_queries(of_scores, own_keys, scores.scale, grad_query + begin * of.grad_query.row, of.grad_query.row,
                           of.queries - begin, of.width);
        }
        wait_for_copies<0>();
        float factor = scores.scale;
        T *to_keys = matrix_of(of, of.grad_key, grad_key, head);
        T *to_values = matrix_of(of, of.grad_value, grad_value, head);
        write_sums(of_keys[0], factor, factor, to_keys, of.grad_key.row, first + row, of.keys, of.width);
        write_sums(of_values[0], 1, 1, to_values, of.grad_value.row, first + row, of.keys, of.value_width);
        __syncthreads(); // the tiles are done with
    }
}
