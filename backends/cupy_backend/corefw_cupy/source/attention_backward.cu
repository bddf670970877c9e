// The gradients of attention by fused multiply-adds. With P = exp(S - L) and dS = P (dO Vᵀ - sum(dO O)) they are three
// products, dQ = dS K, dK = dSᵀ Q and dV = Pᵀ dO. A block owns a tile of rows of one of them, and computes the tiles of
// P or dS that it needs again: no sums are shared between blocks, so results do not depend on their order.

#include "attention_tiles.cuh"

// Blocks (x, y): tiles of the rows of all heads; D columns each of dQ, then of dK, then of dV.
extern "C" __global__ void __launch_bounds__(TILE_THREADS, RESIDENT)
    attention_backward(const T *gradient, const T *query, const T *key, const T *value, const T *bias,
                       const A *logsumexp, const A *averages, Attention of, bool causal, double scale, T *grad_query,
                       T *grad_key, T *grad_value)
{
    alignas(32) __shared__ A stage[STAGE], weights[TILE * PITCH];
    int64 parts = (of.width + D - 1) / D, part = blockIdx.y;
    bool to_query = part < parts, to_value = part >= 2 * parts;
    int64 column = (to_value ? part - 2 * parts : part % parts) * D, count = to_query ? of.queries : of.keys;
    Place place = place_of(of, count, TILE, causal && to_query);
    if (place.first < 0 || place.first >= count)
        return;
    Rows queries = rows_of(of, of.query, query, place.head, of.queries, of.width);
    Rows keys = rows_of(of, of.key, key, place.head, of.keys, of.width);
    Rows values = rows_of(of, of.value, value, place.head, of.keys, of.value_width);
    Rows gradients = rows_of(of, of.gradient, gradient, place.head, of.queries, of.value_width);
    Scores scores = scores_of(of, bias, place.head, causal, scale);
    logsumexp += place.head * of.queries;
    averages += place.head * of.queries;

    Rows own = (to_query ? queries : keys).from(place.first), other = to_query ? keys : queries;
    Rows own_value = (to_query ? gradients : values).from(place.first), other_value = to_query ? values : gradients;
    Rows factor = to_value ? gradients : other;
    int64 down = place.first + threadIdx.x / SIDE * EACH, across = threadIdx.x % SIDE * EACH;
    int64 begin = causal && !to_query ? place.first : 0, end = other.count;
    if (causal && to_query && place.first + TILE < end)
        end = place.first + TILE;

    Sums sums = {};
    for (; begin < end; begin += TILE) {
        A tile[EACH][EACH], of_weights[EACH][EACH];
        if (!to_value)
            multiply_rows(own_value, other_value.from(begin), of_weights, stage);
        multiply_rows(own, other.from(begin), tile, stage);
        for (int i = 0; i < EACH; ++i)
            for (int j = 0; j < EACH; ++j) {
                int64 mine = down + i, others = begin + across + j;
                int64 of_query = to_query ? mine : others, of_key = to_query ? others : mine;
                A weight = 0;
                if (scores.allowed(of_query, of_key)) {
                    weight = exp(scores.of(of_query, of_key, tile[i][j]) - logsumexp[of_query]);
                    if (!to_value)
                        weight *= of_weights[i][j] - averages[of_query];
                }
                tile[i][j] = weight;
            }
        multiply_tile(tile, factor.from(begin), column, sums, weights, stage);
    }
    A factors[EACH];
    for (int i = 0; i < EACH; ++i)
        factors[i] = to_value ? 1 : scores.scale;
    T *to = to_query ? grad_query : to_value ? grad_value : grad_key;
    int64 width = to_value ? of.value_width : of.width;
    write_sums(sums, factors, to + place.head * count * width, place.first, count, column, width);
}
