// Exclusive sums of rows, in place: a block for each row.

#include "sorting/ranks.cuh"

extern "C" __global__ void exclusive_sums(int64 *rows, int64 length, int64 *totals)
{
    int64 *row = rows + blockIdx.x * length, sum = 0;
    for (int64 first = 0; first < length; first += blockDim.x) {
        int64 i = first + threadIdx.x, total, before = sum_before(i < length ? row[i] : 0, total);
        if (i < length)
            row[i] = sum + before;
        sum += total;
    }
    if (threadIdx.x == 0)
        totals[blockIdx.x] = sum;
}

// The same for short rows: a thread for each.
extern "C" __global__ void exclusive_sums_short(int64 *rows, int64 count, int64 length, int64 *totals)
{
    int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
    if (i >= count)
        return;
    for (int64 *at = rows + i * length, *end = at + length; at < end; ++at) {
        int64 value = *at;
        *at = sum;
        sum += value;
    }
    totals[i] = sum;
}
