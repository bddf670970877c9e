// Dropout: the numbers of the uniform stream decide which elements are kept.

#include "random/philox.cuh"

extern "C" __global__ void masked_dropout(const T *input, T *output, bool *mask, int64 n, uint64 seed, uint64 offset,
                                          const uint64 *state, double kept, double scale)
{
    const int per_block = Grid<D>::per_block, width = 16 / sizeof(T);
    int64 first = ((int64)blockIdx.x * blockDim.x + threadIdx.x) * width;
    if (first >= n)
        return;
    Part part(seed, offset, state);
    bool whole = first + width <= n, keep[width];
    T values[width];
    fetch(input, first, n, false, whole && aligned<width>(input), values);
    for (int k = 0; k < width; k += per_block) {
        Block block = part.block((first + k) / per_block);
        for (int i = 0; i < per_block; ++i) {
            keep[k + i] = Grid<D>::closed(block, i) < (D)kept;
            values[k + i] = (D)values[k + i] * (keep[k + i] ? (D)scale : 0);
        }
    }
    deposit(output, first, n, whole, values);
    deposit(mask, first, n, whole, keep);
}
