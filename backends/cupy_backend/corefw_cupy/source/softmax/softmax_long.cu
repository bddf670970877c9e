// Softmax and its logarithm along rows that are too long for registers, forward and backward: they are read twice.
//
// A block works on one of `parts` of a row. If there are several, a first launch (without a result) writes the sums of
// parts, and a second one combines them.

#include "core/exponentials.cuh"

// The part of its row that a block works on.
struct Part {
    int64 row, begin, end;
};

__device__ inline Part part_of(int64 n, int64 parts, int64 length)
{
    int64 begin = blockIdx.x % parts * length;
    return {blockIdx.x / parts, begin, min((int64)n, begin + length)};
}

extern "C" __global__ void __launch_bounds__(MOST_THREADS) softmax_long(
    const T *__restrict__ input, Exponentials *sums, T *output, int64 n, int64 parts, int64 length, bool logarithm)
{
    Part part = part_of(n, parts, length);
    const T *row = input + part.row * n;
    bool packed = packed_rows(n, input, output);
    int lane = threadIdx.x, lanes = blockDim.x;
    Exponentials sum = no_exponentials();
    if (!sums || !output)
        sum = scan(row, part.begin, part.end, lane, lanes, packed);
    else if (lane < parts)
        sum = sums[part.row * parts + lane];
    sum = combined(sum, lanes);
    if (!output) {
        if (lane == 0)
            sums[blockIdx.x] = sum;
        return;
    }
    A shift = log(sum.total), factor = 1 / sum.total;
    walk(part.begin, part.end, lane, lanes, packed, [&](auto several, int64 at) {
        const int count = decltype(several)::count;
        A values[count];
        read<count>(row + at, values);
        for (int k = 0; k < count; ++k)
            values[k] = logarithm ? values[k] - sum.greatest - shift : exp(values[k] - sum.greatest) * factor;
        write<count>(output + part.row * n + at, values);
    });
}

template <int count>
__device__ void read_both(const T *gradient, const T *output, int64 at, A *gradients, A *outputs)
{
    read<count>(gradient + at, gradients);
    read<count>(output + at, outputs);
}

extern "C" __global__ void __launch_bounds__(MOST_THREADS) softmax_long_backward(
    const T *__restrict__ gradient, const T *__restrict__ output, A *sums, T *result, int64 n, int64 parts,
    int64 length, bool logarithm)
{
    Part part = part_of(n, parts, length);
    int64 first = part.row * n;
    bool packed = packed_rows(n, gradient, output, result);
    int lane = threadIdx.x, lanes = blockDim.x;
    A sum = 0;
    if (!sums || !result)
        walk(part.begin, part.end, lane, lanes, packed, [&](auto several, int64 at) {
            const int count = decltype(several)::count;
            A gradients[count], outputs[count];
            read_both<count>(gradient, output, first + at, gradients, outputs);
            for (int k = 0; k < count; ++k)
                sum += logarithm ? gradients[k] : gradients[k] * outputs[k];
        });
    else if (lane < parts)
        sum = sums[part.row * parts + lane];
    sum = combine_block<Add>(sum, A(0));
    if (!result) {
        if (lane == 0)
            sums[blockIdx.x] = sum;
        return;
    }
    walk(part.begin, part.end, lane, lanes, packed, [&](auto several, int64 at) {
        const int count = decltype(several)::count;
        A gradients[count], outputs[count];
        read_both<count>(gradient, output, first + at, gradients, outputs);
        for (int k = 0; k < count; ++k)
            gradients[k] = logarithm ? gradients[k] - exp(outputs[k]) * sum : (gradients[k] - sum) * outputs[k];
        write<count>(result + first + at, gradients);
    });
}
