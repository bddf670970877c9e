// Statistics of groups that are too long for registers. If several blocks work on a group, each leaves its moments, and
// join_moments joins those of a group.

#include "normalization/statistics.cuh"

extern "C" __global__ void __launch_bounds__(MOST_THREADS) moments(
    const T *__restrict__ input, Moments *of_parts, A *means, A *variances, A *scales, View view, int64 parts,
    int64 length, double eps, bool centred)
{
    Part part = part_of(view, parts, length);
    Moving moving = {};
    bool packed = packed_rows(view.inner, input);
    walk(part.begin, part.end, threadIdx.x, blockDim.x, packed, [&](auto several, int64 at) {
        A values[decltype(several)::count];
        read<decltype(several)::count>(input + view.place(part.group, at), values);
        moving.add(values, centred);
    });
    Moments own = moving.moments(centred);
    A n = part.end - part.begin, mean = combine_block<Add>(own.count * own.mean, A(0)) / n;
    A distance = own.count == 0 ? A(0) : own.mean - mean;
    A squares = combine_block<Add>(own.squares + own.count * distance * distance, A(0));
    if (threadIdx.x)
        return;
    if (of_parts)
        of_parts[blockIdx.x] = {n, mean, squares};
    else
        Statistics{means, variances, scales}.put(part.group, mean, squares / n, eps);
}

// Of the columns of a matrix: neighbouring threads work on neighbouring columns, and several on each.
extern "C" __global__ void __launch_bounds__(MOST_THREADS) column_moments(
    const T *__restrict__ input, Moments *of_parts, A *means, A *variances, A *scales, int64 rows, int64 columns,
    int64 width, int64 parts, int64 length, double eps, bool centred)
{
    int64 column = blockIdx.x / parts * width + threadIdx.x % (int)width, begin = blockIdx.x % parts * length;
    int64 end = min(rows, begin + length), lane = threadIdx.x / (int)width, lanes = blockDim.x / (int)width;
    Moving moving = {};
    for (int64 row = begin + lane; column < columns && row < end; row += lanes) {
        A value[] = {input[row * columns + column]};
        moving.add(value, centred);
    }
    Moments own = moving.moments(centred);
    A n = end - begin, mean = combine_column<Add>(own.count * own.mean, width) / n;
    A distance = own.count == 0 ? A(0) : own.mean - mean;
    A squares = combine_column<Add>(own.squares + own.count * distance * distance, width);
    if (lane || column >= columns)
        return;
    if (of_parts)
        of_parts[column * parts + blockIdx.x % parts] = {n, mean, squares};
    else
        Statistics{means, variances, scales}.put(column, mean, squares / n, eps);
}

extern "C" __global__ void join_moments(
    const Moments *__restrict__ of_parts, A *means, A *variances, A *scales, int64 groups, int64 parts, double eps)
{
    int64 group = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (group >= groups)
        return;
    of_parts += group * parts;
    A n = 0, mean = 0, squares = 0;
    for (int64 part = 0; part < parts; ++part) {
        n += of_parts[part].count;
        mean += of_parts[part].count * of_parts[part].mean;
    }
    mean /= n;
    for (int64 part = 0; part < parts; ++part) {
        A distance = of_parts[part].mean - mean;
        squares += of_parts[part].squares + of_parts[part].count * distance * distance;
    }
    Statistics{means, variances, scales}.put(group, mean, squares / n, eps);
}
