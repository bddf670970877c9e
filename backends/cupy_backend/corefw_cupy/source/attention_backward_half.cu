// The gradients of attention of half types by tensor cores, as attention_backward.cu computes them. Two tiles of other
// matrices take turns in shared memory: while one is multiplied, the other one is on its way.

#include "attention_fragments.cuh"

const int OWN = 16 * WARPS, OTHER = 32; // rows of a block's own tile, and of those that pass

// Blocks (x, y): tiles of the rows of all heads; of dQ, dK and dV.
extern "C" __global__ void __launch_bounds__(FRAGMENT_THREADS)
    attention_backward(const T *gradient, const T *query, const T *key, const T *value, const T *bias,
                       const float *logsumexp, const float *averages, Attention of, bool causal, double scale,
                       T *grad_query, T *grad_key, T *grad_value)
{
    alignas(16) __shared__ T tiles[2 * OTHER * PITCH];
    __shared__ float logarithms_of[OTHER], averages_of[OTHER]; // of the queries of a tile
    bool to_query = blockIdx.y == 0, to_value = blockIdx.y == 2;
    int64 count = to_query ? of.queries : of.keys;
    Place place = place_of(of, count, OWN, causal && to_query);
    if (place.first < 0 || place.first >= count)
        return;
    Rows queries = rows_of(of, of.query, query, place.head, of.queries, of.width);
    Rows keys = rows_of(of, of.key, key, place.head, of.keys, of.width);
    Rows values = rows_of(of, of.value, value, place.head, of.keys, of.value_width);
    Rows gradients = rows_of(of, of.gradient, gradient, place.head, of.queries, of.value_width);
    Scores scores = scores_of(of, bias, place.head, causal, scale);
    logsumexp += place.head * of.queries;
    averages += place.head * of.queries;

    // Of the first product dP or, for dV, S, and of the second, S, which dV does without. What a tile's weights are
    // multiplied with is always the second tile.
    Rows own_first = to_query ? gradients : to_value ? keys : values, own_second = to_query ? queries : keys;
    Rows first_rows = to_query ? values : to_value ? queries : gradients;
    Rows second_rows = to_query ? keys : to_value ? gradients : queries;
    T *first_tile = tiles, *second_tile = tiles + OTHER * PITCH;
    Left<1> first_own, second_own;
    load_tile(own_first.from(place.first), OWN, tiles);
    wait_for_copies<0>();
    __syncthreads();
    first_own.load(tiles);
    __syncthreads();
    load_tile(own_second.from(place.first), OWN, tiles);
    wait_for_copies<0>();
    __syncthreads();
    second_own.load(tiles);
    __syncthreads();

    int64 row = place.first + own_row<1>();
    float own_logarithm[2] = {}, own_average[2] = {};
    for (int half = 0; half < 2; ++half)
        if (to_query && row + 8 * half < of.queries) {
            own_logarithm[half] = logsumexp[row + 8 * half] * LOG2_E;
            own_average[half] = averages[row + 8 * half];
        }
    int64 begin = causal && !to_query ? place.first : 0, end = to_query ? of.keys : of.queries;
    if (causal && to_query && place.first + OWN < end)
        end = place.first + OWN;

    float sums[1][D / 8][4] = {};
    load_tile(first_rows.from(begin), OTHER, first_tile);
    load_tile(second_rows.from(begin), OTHER, second_tile);
    for (; begin < end; begin += OTHER) {
        float of_weights[1][OTHER / 8][4], tile[1][OTHER / 8][4];
        wait_for_copies<1>();
        __syncthreads(); // the first tile is there
        multiply_rows(first_own, first_tile, of_weights);
        if (!to_query && threadIdx.x < OTHER) {
            bool exists = begin + threadIdx.x < end;
            logarithms_of[threadIdx.x] = exists ? logsumexp[begin + threadIdx.x] * LOG2_E : 0;
            averages_of[threadIdx.x] = exists ? averages[begin + threadIdx.x] : 0;
        }
        __syncthreads();
        load_tile(first_rows.from(begin + OTHER), OTHER, first_tile);
        wait_for_copies<1>();
        __syncthreads(); // the second tile is there
        if (to_value)
            for (int n = 0; n < OTHER / 8; ++n)
                for (int i = 0; i < 4; ++i)
                    tile[0][n][i] = of_weights[0][n][i];
        else
            multiply_rows(second_own, second_tile, tile);
        if (to_query)
            score<false>(scores, row, begin, end, tile[0]);
        else
            score<true>(scores, row, begin, end, tile[0]);
#pragma unroll
        for (int n = 0; n < OTHER / 8; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                int column = column_of(n, i);
                float weight = exp2f(tile[0][n][i] - (to_query ? own_logarithm[i / 2] : logarithms_of[column]));
                float average = to_query ? own_average[i / 2] : averages_of[column];
                tile[0][n][i] = to_value ? weight : weight * (of_weights[0][n][i] - average);
            }
        multiply_weights(tile, second_tile, sums);
        __syncthreads();
        load_tile(second_rows.from(begin + OTHER), OTHER, second_tile);
    }
    wait_for_copies<0>();
    T *to = to_query ? grad_query : to_value ? grad_value : grad_key;
    int64 width = to_value ? of.value_width : of.width;
    float factor = to_value ? 1 : scores.scale;
    write_sums(sums[0], factor, factor, to + place.head * count * width, row, count, width);
}
