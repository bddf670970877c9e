// Attention by fused multiply-adds, a tile of queries per block, without the matrix of scores: a tile of keys after the
// other with the softmax relative to the largest score so far (Dao, "FlashAttention-2", 2023).

#include "attention/attention_tiles.cuh"

// `value` of the 16 threads of a row combined.
template <class Combine> __device__ A combine_row(A value)
{
    for (int distance = SIDE / 2; distance; distance /= 2)
        value = Combine::of(value, __shfl_xor_sync(EVERY_LANE, value, distance));
    return value;
}

const int RESIDENT = sizeof(A) == 4 && D <= 128 ? 2 : 1; // blocks that an SM shall have registers for

extern "C" __global__ void __launch_bounds__(TILE_THREADS, RESIDENT)
    attention(const T *query, const T *key, const T *value, const T *bias, Attention of, bool causal, double scale,
              T *output, A *logsumexp)
{
    alignas(32) __shared__ A stage[STAGE], weights[TILE * PITCH];
    Place place = place_of(of, of.queries, TILE, causal);
    int64 column = blockIdx.y * (int64)D, end = of.keys;
    if (causal && place.first + TILE < end)
        end = place.first + TILE;
    Rows queries = rows_of(of, of.query, query, place.head, of.queries, of.width).from(place.first);
    Rows keys = rows_of(of, of.key, key, place.head, end, of.width);
    Rows values = rows_of(of, of.value, value, place.head, end, of.value_width);
    Scores scores = scores_of(of, bias, place.head, causal, scale);
    int64 first = place.first + threadIdx.x / SIDE * EACH, across = threadIdx.x % SIDE * EACH;

    Sums sums = {};
    A largest[EACH], total[EACH] = {}; // a thread's part of it
    for (int i = 0; i < EACH; ++i)
        largest[i] = -INFINITY;
    for (int64 begin = 0; begin < end; begin += TILE) {
        A tile[EACH][EACH];
        multiply_rows(queries, keys.from(begin), tile, stage);
        for (int i = 0; i < EACH; ++i) {
            A top = largest[i];
            for (int j = 0; j < EACH; ++j) {
                tile[i][j] = scores.of(first + i, begin + across + j, tile[i][j]);
                top = Greater::of(tile[i][j], top);
            }
            top = combine_row<Greater>(top);
            A origin = top == -INFINITY ? 0 : top, factor = exp(largest[i] - origin);
            largest[i] = top;
            total[i] *= factor;
            for (int j = 0; j < EACH; ++j) {
                tile[i][j] = exp(tile[i][j] - origin);
                total[i] += tile[i][j];
            }
            for (int s = 0; s < STEPS; ++s)
                for (int n = 0; n < STEP; ++n)
                    sums[i][s][n] *= factor;
        }
        multiply_tile<false>(tile, values.from(begin), column, sums, weights, stage);
    }
    for (int i = 0; i < EACH; ++i) {
        total[i] = combine_row<Add>(total[i]);
        bool nowhere = total[i] == 0;
        if (blockIdx.y == 0 && across == 0 && first + i < of.queries)
            logsumexp[place.head * of.queries + first + i] = nowhere ? INFINITY : log(total[i]) + largest[i];
        total[i] = 1 / (nowhere ? 1 : total[i]);
    }
    output = matrix_of(of, of.output, output, place.head);
    write_sums(sums, total, output, of.output.row, place.first, of.queries, column, of.value_width);
}
