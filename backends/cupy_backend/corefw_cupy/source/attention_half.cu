// Attention of half types by tensor cores, as attention.cu does it by fused multiply-adds. While a tile of keys is
// multiplied, that of the values is on its way, and while values are, the next keys.

#include "attention_fragments.cuh"

const int OTHER = D <= 128 ? 64 : 32; // keys of a tile

// `value` of the four lanes of a row combined.
template <class Combine> __device__ float combine_row(float value)
{
    value = Combine::of(value, __shfl_xor_sync(EVERY_LANE, value, 1));
    return Combine::of(value, __shfl_xor_sync(EVERY_LANE, value, 2));
}

extern "C" __global__ void __launch_bounds__(FRAGMENT_THREADS)
    attention(const T *query, const T *key, const T *value, const T *bias, Attention of, bool causal, double scale,
              T *output, float *logsumexp)
{
    alignas(16) __shared__ T tiles[2 * OTHER * PITCH];
    T *key_tile = tiles, *value_tile = tiles + OTHER * PITCH;
    Place place = place_of(of, of.queries, OWN, causal);
    int64 end = causal && place.first + OWN < of.keys ? place.first + OWN : of.keys;
    Rows keys = rows_of(of, of.key, key, place.head, end, of.width);
    Rows values = rows_of(of, of.value, value, place.head, end, of.value_width);
    Scores scores = scores_of(of, bias, place.head, causal, scale);
    int64 first = place.first + own_row();

    Left queries;
    load_tile(rows_of(of, of.query, query, place.head, of.queries, of.width).from(place.first), OWN, tiles);
    wait_for_copies<0>();
    __syncthreads();
    queries.load(tiles);
    __syncthreads();

    float sums[D / 8][4] = {}, largest[2] = {-INFINITY, -INFINITY}, total[2] = {}; // of scores times LOG2_E
    load_tile(keys, OTHER, key_tile);
    for (int64 begin = 0; begin < end; begin += OTHER) {
        float tile[OTHER / 8][4];
        load_tile(values.from(begin), OTHER, value_tile);
        wait_for_copies<1>();
        __syncthreads(); // the keys are there
        multiply_rows(queries, key_tile, tile);
        __syncthreads();
        load_tile(keys.from(begin + OTHER), OTHER, key_tile);

        score<false>(scores, first, begin, end, tile);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float top = largest[half];
            for (int n = 0; n < OTHER / 8; ++n)
                for (int i = 2 * half; i < 2 * half + 2; ++i)
                    top = Greater::of(tile[n][i], top);
            top = combine_row<Greater>(top);
            float origin = top == -INFINITY ? 0 : top, factor = exp2f(largest[half] - origin);
            largest[half] = top;
            total[half] *= factor;
            for (int n = 0; n < OTHER / 8; ++n)
                for (int i = 2 * half; i < 2 * half + 2; ++i) {
                    tile[n][i] = exp2f(tile[n][i] - origin);
                    total[half] += tile[n][i];
                }
            for (int n = 0; n < D / 8; ++n)
                for (int i = 2 * half; i < 2 * half + 2; ++i)
                    sums[n][i] *= factor;
        }
        wait_for_copies<1>();
        __syncthreads(); // the values are there
        multiply_weights(tile, value_tile, sums);
        __syncthreads();
    }
    wait_for_copies<0>();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        total[half] = combine_row<Add>(total[half]);
        bool nowhere = total[half] == 0;
        int64 row = first + 8 * half;
        if (threadIdx.x % 4 == 0 && row < of.queries)
            logsumexp[place.head * of.queries + row] =
                nowhere ? INFINITY : (log2f(total[half]) + largest[half]) * LN_2;
        total[half] = 1 / (nowhere ? 1 : total[half]);
    }
    write_sums(sums, total[0], total[1], output + place.head * of.queries * of.value_width, place.first, of.queries,
               of.value_width);
}
