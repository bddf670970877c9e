// Softmax and its logarithm along a dimension that is not the last, forward and backward: neighbouring threads work on
// neighbouring columns, and several on each.

#include "core/exponentials.cuh"

// A thread's column: where it begins, and which of the threads along it this one is.
struct Column {
    int64 first;
    bool there;
    int lane, lanes;
};

__device__ inline Column column_of(int64 n, int64 inner, int64 width, int64 tiles)
{
    int64 outer = blockIdx.x / tiles, at = blockIdx.x % tiles * width + threadIdx.x % width;
    return {outer * n * inner + at, at < inner, int(threadIdx.x / width), int(blockDim.x / width)};
}

extern "C" __global__ void __launch_bounds__(MOST_THREADS) softmax_columns(
    const T *__restrict__ input, T *output, int64 n, int64 inner, int64 width, int64 tiles, bool logarithm)
{
    Column column = column_of(n, inner, width, tiles);
    int64 own = column.there ? n : 0;
    input += column.first;
    output += column.first;
    Exponentials sum = no_exponentials();
    for (int64 at = column.lane; at < own; at += column.lanes) {
        A exponent[] = {input[at * inner]};
        add(sum, exponent);
    }
    sum = combined_column(sum, width);
    A shift = log(sum.total), factor = 1 / sum.total;
    for (int64 at = column.lane; at < own; at += column.lanes) {
        A shifted = A(input[at * inner]) - sum.greatest;
        output[at * inner] = logarithm ? shifted - shift : exp(shifted) * factor;
    }
}

extern "C" __global__ void __launch_bounds__(MOST_THREADS) softmax_columns_backward(
    const T *__restrict__ gradient, const T *__restrict__ output, T *result, int64 n, int64 inner, int64 width,
    int64 tiles, bool logarithm)
{
    Column column = column_of(n, inner, width, tiles);
    int64 own = column.there ? n : 0;
    gradient += column.first;
    output += column.first;
    result += column.first;
    A sum = 0;
    for (int64 at = column.lane; at < own; at += column.lanes)
        sum += logarithm ? A(gradient[at * inner]) : A(gradient[at * inner]) * A(output[at * inner]);
    sum = combine_column<Add>(sum, width);
    for (int64 at = column.lane; at < own; at += column.lanes) {
        A slope = gradient[at * inner], value = output[at * inner];
        result[at * inner] = logarithm ? slope - exp(value) * sum : (slope - sum) * value;
    }
}
