// Attention of half types by tensor cores, as attention.cu does it by fused multiply-adds. While keys are multiplied,
// their values are on the way, and while values are, the next keys. Shared memory (attention.py) holds OWN rows of
// queries, STAGE keys and their values.

#include "attention/attention_fragments.cuh"

const int STRIPS = D <= 128 ? 2 : 1, OWN = 16 * WARPS * STRIPS; // queries of a warp and of a block
const int STAGE = D <= 128 ? 64 : 32;                           // keys that pass at once
const int OTHER = D <= 64 ? 64 : 32;                            // of which registers hold the scores: a tile

// `value` of the four lanes of a row combined.
template <class Combine> __device__ float combine_row(float value)
{
    value = Combine::of(value, __shfl_xor_sync(EVERY_LANE, value, 1));
    return Combine::of(value, __shfl_xor_sync(EVERY_LANE, value, 2));
}

// Turn the scores of a strip into weights relative to the largest score so far. Updates the largest scores and the sums
// of weights, and shrinks what was summed before.
template <int tiles>
__device__ void weigh(float (&tile)[tiles][4], float (&largest)[2], float (&total)[2], float (&sums)[D / 8][4])
{
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        float top = largest[half];
        for (int n = 0; n < tiles; ++n)
            for (int i = 2 * half; i < 2 * half + 2; ++i)
                top = Greater::of(tile[n][i], top);
        top = combine_row<Greater>(top);
        float origin = top == -INFINITY ? 0 : top, factor = exp2f(largest[half] - origin);
        largest[half] = top;
        total[half] *= factor;
        for (int n = 0; n < tiles; ++n)
            for (int i = 2 * half; i < 2 * half + 2; ++i) {
                tile[n][i] = exp2f(tile[n][i] - origin);
                total[half] += tile[n][i];
            }
        for (int n = 0; n < D / 8; ++n)
            for (int i = 2 * half; i < 2 * half + 2; ++i)
                sums[n][i] *= factor;
    }
}

extern "C" __global__ void __launch_bounds__(FRAGMENT_THREADS, 2)
    attention(const T *query, const T *key, const T *value, const T *bias, Attention of, bool causal, double scale,
              T *output, float *logsumexp)
{
    DYNAMIC_SHARED(T, own);
    T *key_stage = own + OWN * PITCH, *value_stage = key_stage + STAGE * PITCH;
    Place place = place_of(of, of.queries, OWN, causal);
    int64 end = causal && place.first + OWN < of.keys ? place.first + OWN : of.keys;
    Rows keys = rows_of(of, of.key, key, place.head, end, of.width);
    Rows values = rows_of(of, of.value, value, place.head, end, of.value_width);
    Scores scores = scores_of(of, bias, place.head, causal, scale);
    int64 first = place.first + own_row<STRIPS>();

    load_tile(rows_of(of, of.query, query, place.head, of.queries, of.width).from(place.first), OWN, own);

    float sums[STRIPS][D / 8][4] = {}, largest[STRIPS][2], total[STRIPS][2] = {}; // largest: of scores times LOG2_E
    for (int strip = 0; strip < STRIPS; ++strip)
        largest[strip][0] = largest[strip][1] = -INFINITY;
    load_tile(keys, STAGE, key_stage);
    for (int64 begin = 0; begin < end; begin += STAGE) {
        load_tile(values.from(begin), STAGE, value_stage);
        wait_for_copies<1>();
        __syncthreads(); // the keys are there
        for (int row = 0; row < STAGE; row += OTHER) {
            float tile[STRIPS][OTHER / 8][4];
            multiply_rows(own, key_stage + row * PITCH, tile);
            if (row + OTHER == STAGE) {
                __syncthreads(); // the keys are done with
                load_tile(keys.from(begin + STAGE), STAGE, key_stage);
            }
#pragma unroll
            for (int strip = 0; strip < STRIPS; ++strip) {
                score<false>(scores, first + 16 * strip, begin + row, end, tile[strip]);
                weigh(tile[strip], largest[strip], total[strip], sums[strip]);
            }
            if (row == 0) {
                wait_for_copies<STAGE == OTHER>();
                __syncthreads(); // the values are there
            }
            multiply_weights(tile, value_stage + row * PITCH, sums);
        }
        __syncthreads(); // the values are done with
    }
    wait_for_copies<0>();
    output = matrix_of(of, of.output, output, place.head);
    logsumexp += place.head * of.queries;
#pragma unroll
    for (int strip = 0; strip < STRIPS; ++strip) {
        float factors[2];
        for (int half = 0; half < 2; ++half) {
            float sum = combine_row<Add>(total[strip][half]);
            bool nowhere = sum == 0;
            int64 row = first + 16 * strip + 8 * half;
            if (threadIdx.x % 4 == 0 && row < of.queries)
                logsumexp[row] = nowhere ? INFINITY : (log2f(sum) + largest[strip][half]) * LN_2;
            factors[half] = 1 / (nowhere ? 1 : sum);
        }
        write_sums(sums[strip], factors[0], factors[1], output, of.output.row, first + 16 * strip, of.queries,
                   of.value_width);
    }
}
