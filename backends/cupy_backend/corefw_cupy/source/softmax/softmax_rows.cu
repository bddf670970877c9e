// Softmax and its logarithm along rows that threads hold in registers, forward and backward.

#include "core/rows.cuh"

extern "C" __global__ void __launch_bounds__(MOST_THREADS) softmax_rows(
    const T *__restrict__ input, T *output, int64 rows, int64 n, int64 lanes, bool logarithm)
{
    Lane lane = lane_of(lanes);
    bool packed = packed_rows(n, input, output);
    int64 own = lane.row < rows ? n : 0;
    A values[ITEMS];
    load(input + lane.row * n, own, lane, packed, A(-INFINITY), values);

    A greatest = values[0];
    for (int item = 1; item < ITEMS; ++item)
        greatest = Greater::of(greatest, values[item]);
    greatest = combine_lanes<Greater>(greatest, A(-INFINITY), lane.lanes);

    A total = 0;
    for (int item = 0; item < ITEMS; ++item) {
        values[item] -= greatest;
        A exponential = exp(values[item]);
        total += exponential;
        if (!logarithm)
            values[item] = exponential;
    }
    total = combine_lanes<Add>(total, A(0), lane.lanes);

    A shift = log(total), factor = 1 / total;
    for (int item = 0; item < ITEMS; ++item)
        values[item] = logarithm ? values[item] - shift : values[item] * factor;
    store(output + lane.row * n, own, lane, packed, values);
}

extern "C" __global__ void __launch_bounds__(MOST_THREADS) softmax_rows_backward(
    const T *__restrict__ gradient, const T *__restrict__ output, T *result, int64 rows, int64 n, int64 lanes,
    bool logarithm)
{
    Lane lane = lane_of(lanes);
    bool packed = packed_rows(n, gradient, output, result);
    int64 own = lane.row < rows ? n : 0;
    A gradients[ITEMS], outputs[ITEMS];
    load(gradient + lane.row * n, own, lane, packed, A(0), gradients);
    load(output + lane.row * n, own, lane, packed, A(0), outputs);

    A total = 0;
    for (int item = 0; item < ITEMS; ++item)
        total += logarithm ? gradients[item] : gradients[item] * outputs[item];
    total = combine_lanes<Add>(total, A(0), lane.lanes);

    for (int item = 0; item < ITEMS; ++item)
        gradients[item] =
            logarithm ? gradients[item] - exp(outputs[item]) * total : (gradients[item] - total) * outputs[item];
    store(result + lane.row * n, own, lane, packed, gradients);
}
