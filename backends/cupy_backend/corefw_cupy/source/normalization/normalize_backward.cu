// Gradients of normalisations, where the elements of a group stay in registers: with x̂ = (input - mean) * scale,
// g = gradient * weight and < > the mean over a group, (g - <g> - x̂ <g x̂>) * scale. Without means <g> is left out.

#include "normalization/groups.cuh"

// A group's sums of x̂ gradient and gradient go to of_weight and of_bias if a weight per group is wanted.
extern "C" __global__ void __launch_bounds__(MOST_THREADS) normalize_backward(
    const T *__restrict__ gradient, const T *__restrict__ input, const WEIGHT *__restrict__ weight,
    const A *__restrict__ means, const A *__restrict__ scales, T *result, A *of_weight, A *of_bias, View view,
    int64 lanes)
{
    Lane lane = lane_of(lanes);
    bool packed = packed_rows(view.inner, gradient, input, weight, result), there = lane.row < view.groups;
    int64 n = there ? view.size() : 0;
    A gradients[ITEMS], values[ITEMS];
    load_group(gradient, view, lane.row, n, lane, packed, gradients);
    load_group(input, view, lane.row, n, lane, packed, values);
    A mean = means && there ? means[lane.row] : A(0), scale = there ? scales[lane.row] : A(0);

    A product = 0, sum = 0;
    for_items(lane, packed, [&](auto several, int item, int64 at) {
        const int count = decltype(several)::count;
        if (at >= n)
            return;
        A factors[count];
        read_weights(of_weight ? nullptr : weight, view, lane.row, at, A(1), factors);
        for (int k = item; k < item + count; ++k) {
            gradients[k] *= factors[k - item];
            values[k] = (values[k] - mean) * scale;
            product += gradients[k] * values[k];
            sum += gradients[k];
        }
    });
    product = combine_lanes<Add>(product, A(0), lane.lanes);
    sum = combine_lanes<Add>(sum, A(0), lane.lanes);
    A factor = 1;
    if (of_weight && there) {
        factor = weight[lane.row];
        if (lane.at == 0) {
            of_weight[lane.row] = product;
            of_bias[lane.row] = sum;
        }
    }

    A count = view.size(), along = product / count, level = means ? sum / count : A(0);
    for (int item = 0; item < ITEMS; ++item)
        gradients[item] = (gradients[item] - level - values[item] * along) * scale * factor;
    for_items(lane, packed, [&](auto several, int item, int64 at) {
        if (at < n)
            write<decltype(several)::count>(result + view.place(lane.row, at), gradients + item);
    });
}
