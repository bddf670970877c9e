// Statistics of groups that are too long for registers. If several blocks work on a group, each leaves its moments, and
// join_moments joins those of a group.

#include "normalization/statistics.cuh"

extern "C" __global__ void __launch_bounds__(MOST_THREADS) moments(
    const T *__restrict__ input, Moments<A> *of_parts, A *means, A *variances, A *scales, View view, int64 parts,
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
    Moments<A> joined = combine_block<Join>(moving.moments(centred), Moments<A>{});
    if (threadIdx.x)
        return;
    if (of_parts)
        of_parts[blockIdx.x] = joined;
    else
        Statistics{means, variances, scales}.put(part.group, joined, eps);
}

// Of the columns of a matrix: neighbouring threads work on neighbouring columns, and several on each.
extern "C" __global__ void __launch_bounds__(MOST_THREADS, 1) column_moments(
    const T *__restrict__ input, Moments<A> *of_parts, A *means, A *variances, A *scales, int64 rows, int64 columns,
    int64 width, int64 parts, int64 length, double eps, bool centred)
{
    int64 column = blockIdx.x / parts * width + threadIdx.x % (int)width, begin = blockIdx.x % parts * length;
    int64 end = min(rows, begin + length), lane = threadIdx.x / (int)width, lanes = blockDim.x / (int)width;
    Moving moving = {};
    for (int64 row = begin + lane; column < columns && row < end; row += lanes) {
        A value[] = {input[row * columns + column]};
        moving.add(value, centred);
    }
    Moments<A> joined = combine_column<Join>(moving.moments(centred), width);
    if (lane || column >= columns)
        return;
    if (of_parts)
        of_parts[column * parts + blockIdx.x % parts] = joined;
    else
        Statistics{means, variances, scales}.put(column, joined, eps);
}

extern "C" __global__ void join_moments(
    const Moments<A> *__restrict__ of_parts, A *means, A *variances, A *scales, int64 groups, int64 parts, double eps)
{
    int64 group = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (group >= groups)
        return;
    of_parts += group * parts;
    Moments<A> joined = {};
    for (int64 part = 0; part < parts; ++part)
        joined = Join::of(joined, of_parts[part]);
    Statistics{means, variances, scales}.put(group, joined, eps);
}
