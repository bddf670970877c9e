// Gradients of normalisations of rows with a weight per element of a row, whose elements stay in registers: those of
// the input (see normalize_backward.cu), and sums over the rows that one set of lanes works on, one after the other:
// of_parts[set][0] of x̂ gradient, for the weight, and of_parts[set][1] of the gradient, for the bias.

#include "normalization/groups.cuh"

extern "C" __global__ void __launch_bounds__(MOST_THREADS) normalize_weights(
    const T *__restrict__ gradient, const T *__restrict__ input, const WEIGHT *__restrict__ weight,
    const A *__restrict__ means, const A *__restrict__ scales, T *result, A *of_parts, View view, int64 lanes)
{
    Lane lane = lane_of(lanes);
    int64 sets = (int64)gridDim.x * (blockDim.x / lane.lanes), size = view.inner, set = lane.row;
    bool packed = packed_rows(size, gradient, input, weight, result);
    A weights[ITEMS], of_weight[ITEMS] = {}, of_bias[ITEMS] = {};
    load(weight, size, lane, packed, A(0), weights);

    for (int64 first = 0; first < view.groups; first += sets) {
        int64 row = first + set, n = row < view.groups ? size : 0;
        A gradients[ITEMS], values[ITEMS];
        load(gradient + row * size, n, lane, packed, A(0), gradients);
        load(input + row * size, n, lane, packed, A(0), values);
        A mean = means && n ? means[row] : A(0), scale = n ? scales[row] : A(0), product = 0, sum = 0;
        for (int item = 0; item < ITEMS; ++item) {
            values[item] = (values[item] - mean) * scale;
            of_weight[item] += gradients[item] * values[item];
            of_bias[item] += gradients[item];
            gradients[item] *= weights[item];
            product += gradients[item] * values[item];
            sum += gradients[item];
        }
        A along = combine_lanes<Add>(product, A(0), lane.lanes) / A(size);
        A level = combine_lanes<Add>(sum, A(0), lane.lanes) / A(size);
        for (int item = 0; item < ITEMS; ++item)
            gradients[item] = (gradients[item] - (means ? level : A(0)) - values[item] * along) * scale;
        store(result + row * size, n, lane, packed, gradients);
    }

    of_parts += set * 2 * size;
    for_items(lane, packed, [&](auto several, int item, int64 at) {
        for (int k = 0; k < decltype(several)::count; ++k)
            if (at < size) {
                of_parts[at + k] = of_weight[item + k];
                of_parts[size + at + k] = of_bias[item + k];
            }
    });
}
