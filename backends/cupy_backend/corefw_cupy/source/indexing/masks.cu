// Selecting the true elements of masks: counts, positions, and moves of elements of other arrays.

#include "indexing/masks.cuh"

#define MAX_DIMS 16

struct Sizes {
    int64 dims;
    int64 sizes[MAX_DIMS];
};

extern "C" __global__ void count_true(const bool *mask, int64 n, int64 *counts)
{
    int64 count = combine_block<Add>((int64)number_of(own_marks(mask, n)), 0ll);
    if (threadIdx.x == 0)
        counts[blockIdx.x] = count;
}

// Rows of coordinates.
extern "C" __global__ void find_true(const bool *mask, int64 n, const int64 *ranks, int64 *rows, Sizes shape)
{
    for_each_true(mask, n, ranks, [&](int64 i, int64 rank) {
        for (int dim = shape.dims - 1; dim >= 0; --dim) {
            rows[rank * shape.dims + dim] = i % shape.sizes[dim];
            i /= shape.sizes[dim];
        }
    });
}
