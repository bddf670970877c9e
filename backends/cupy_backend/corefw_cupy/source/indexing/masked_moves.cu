// Moves of elements between where a mask is true and a line without gaps.

#include "indexing/masks.cuh"
#include "core/device_asserts.cuh"

extern "C" __global__ void masked_read(const bool *mask, int64 n, const int64 *ranks, const T *array, T *line)
{
    for_each_true(mask, n, ranks, [=](int64 i, int64 rank) { line[rank] = array[i]; });
}

// Reported if the mask has more true elements, `count`, than the line has elements.
extern "C" __global__ void masked_write(const bool *mask, int64 n, const int64 *ranks, T *array, const T *line,
                                        const int64 *count, int64 available, int64 *device_asserts, int64 kind)
{
    if (*count > available) {
        report(device_asserts, kind, available, *count, 0);
        return;
    }
    for_each_true(mask, n, ranks, [=](int64 i, int64 rank) { array[i] = line[rank]; });
}
