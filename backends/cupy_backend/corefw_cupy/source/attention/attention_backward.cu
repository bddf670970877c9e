// The gradients of attention by fused multiply-adds. With P = exp(S - L) and dS = P (dO Vᵀ - sum(dO O)) they are
// dQ = dS K, dK = dSᵀ Q and dV = Pᵀ dO, which makes five products with S = Q Kᵀ and dO Vᵀ. A block owns tiles of keys,
// whose dK and dV it holds, and adds what they contribute to dQ to that of all blocks.

#include "attention/attention_tiles.cuh"

// The grid has in x a number of blocks for each head, which take turns with its tiles of keys, and as many share each
// of the `buffers` of dQ; in y one for D columns each of the gradients.
extern "C" __global__ void __launch_bounds__(TILE_THREADS, 1)
    attention_backward(const T *gradient, const T *query, const T *key, const T *value, const T *bias,
                       const A *logsumexp, const A *averages, Attention of, bool causal, double scale, A *grad_query,
                       int64 buffers, T *grad_key, T *grad_value)
{
    alignas(32) __shared__ A stage[STAGE], weights[TILE * PITCH];
    uint32 heads = of.heads, head = blockIdx.x % heads, turn = blockIdx.x / heads;
    Rows queries = rows_of(of, of.query, query, head, of.queries, of.width);
    Rows keys = rows_of(of, of.key, key, head, of.keys, of.width);
    Rows values = rows_of(of, of.value, value, head, of.keys, of.value_width);
    Rows gradients = rows_of(of, of.gradient, gradient, head, of.queries, of.value_width);
    Scores scores = scores_of(of, bias, head, causal, scale);
    logsumexp += head * of.queries;
    averages += head * of.queries;
    grad_query += turn % (uint32)buffers * of.heads * of.queries * of.width;
    grad_query = matrix_of(of, of.grad_query, grad_query, head);
    grad_key = matrix_of(of, of.grad_key, grad_key, head);
    grad_value = matrix_of(of, of.grad_value, grad_value, head);

    int64 column = blockIdx.y * (int64)D;
    int down = threadIdx.x / SIDE * EACH, across = threadIdx.x % SIDE * EACH;
    for (int64 first = turn * (int64)TILE; first < of.keys; first += gridDim.x / heads * (int64)TILE) {
        Rows own_keys = keys.from(first), own_values = values.from(first);
        Sums of_keys = {}, of_values = {};
        for (int64 begin = causal ? first : 0; begin < of.queries; begin += TILE) {
            A tile[EACH][EACH], changes[EACH][EACH];
            multiply_rows(own_keys, queries.from(begin), tile, stage);
            multiply_rows(own_values, gradients.from(begin), changes, stage);
            for (int j = 0; j < EACH; ++j) {
                int64 of_query = begin + across + j;
                bool exists = of_query < of.queries;
                A logarithm = exists ? logsumexp[of_query] : 0, average = exists ? averages[of_query] : 0;
                for (int i = 0; i < EACH; ++i) {
                    bool allowed = scores.allowed(of_query, first + down + i);
                    A score = scores.of(of_query, first + down + i, tile[i][j]);
                    tile[i][j] = allowed ? exp(score - logarithm) : 0;
                    changes[i][j] = allowed ? tile[i][j] * (changes[i][j] - average) : 0;
                }
            }
            multiply_tile<false>(tile, gradients.from(begin), column, of_values, weights, stage);
            multiply_tile<false>(changes, queries.from(begin), column, of_keys, weights, stage);
            Sums of_queries = {};
            multiply_tile<true>(changes, own_keys, column, of_queries, weights, stage);
            for (int i = 0; i < EACH; ++i) {
                A *to = grad_query + (begin + down + i) * of.grad_query.row + column;
                for (int s = 0; s < STEPS; ++s)
                    for (int n = 0; n < STEP; ++n)
                        if (begin + down + i < of.queries && column + column_of(s, n) < of.width)
                            atomicAdd(to + column_of(s, n), of_queries[i][s][n] * scores.scale);
            }
        }
        A scales[EACH], ones[EACH];
        for (int i = 0; i < EACH; ++i) {
            scales[i] = scores.scale;
            ones[i] = 1;
        }
        write_sums(of_keys, scales, grad_key, of.grad_key.row, first, of.keys, column, of.width);
        write_sums(of_values, ones, grad_value, of.grad_value.row, first, of.keys, column, of.value_width);
    }
}
