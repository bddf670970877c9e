// Groups brought to mean 0 and variance 1 (or, not centred, to mean square 1), times a weight, plus a bias: elements
// stay in registers.

#include "normalization/statistics.cuh"

extern "C" __global__ void __launch_bounds__(MOST_THREADS, 1) normalize(
    const T *__restrict__ input, const WEIGHT *__restrict__ weight, const WEIGHT *__restrict__ bias, T *output,
    A *means, A *variances, A *scales, View view, int64 lanes, double eps, bool centred)
{
    Lane lane = lane_of(lanes);
    bool packed = packed_rows(view.inner, input, weight, bias, output), there = lane.row < view.groups;
    int64 n = there ? view.size() : 0;
    A count = view.size(), values[ITEMS];
    load_group(input, view, lane.row, n, lane, packed, values);

    A mean = 0, squares = 0;
    if (centred) {
        A first = there ? A(input[view.place(lane.row, 0)]) : A(0), distances = 0; // which do not overflow as sums do
        for_items(lane, packed, [&](auto several, int item, int64 at) {
            for (int k = 0; k < decltype(several)::count; ++k)
                if (at < n)
                    distances += values[item + k] - first;
        });
        mean = first + combine_lanes<Add>(distances, A(0), lane.lanes) / count;
    }
    for_items(lane, packed, [&](auto several, int item, int64 at) {
        for (int k = 0; k < decltype(several)::count; ++k)
            if (at < n) {
                values[item + k] -= mean;
                squares += values[item + k] * values[item + k];
            }
    });
    squares = combine_lanes<Add>(squares, A(0), lane.lanes);
    A scale = 1 / sqrt(squares / count + A(eps));
    if (there && lane.at == 0)
        Statistics{means, variances, scales}.put(lane.row, {count, mean, squares}, eps);

    for_items(lane, packed, [&](auto several, int item, int64 at) {
        const int count = decltype(several)::count;
        if (at >= n)
            return;
        A factors[count], shifts[count];
        read_weights(weight, view, lane.row, at, A(1), factors);
        read_weights(bias, view, lane.row, at, A(0), shifts);
        for (int k = 0; k < count; ++k)
            values[item + k] = values[item + k] * scale * factors[k] + shifts[k];
        write<count>(output + view.place(lane.row, at), values + item);
    });
}
