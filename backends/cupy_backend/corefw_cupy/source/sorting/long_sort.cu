// What a radix sort of rows begins and ends with: keys from elements, and elements in the order that was found.

#include "sorting/keys.cuh"

extern "C" __global__ void make_keys(const T *input, KeyOf<sizeof(T)>::type *keys, int64 rows, int64 n, int64 inner,
                                     bool descending)
{
    int64 at = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (at < rows * n)
        keys[at] = sort_key(input[in_row(at / n, at % n, n, inner)], descending);
}

extern "C" __global__ void in_order(const T *input, const uint32 *positions, T *values, int64 *indices, int64 rows,
                                    int64 n, int64 k, int64 inner)
{
    int64 at = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= rows * k)
        return;
    int64 row = at / k, i = at % k, position = positions[row * n + i], to = in_row(row, i, k, inner);
    values[to] = input[in_row(row, position, n, inner)];
    indices[to] = position;
}
