// Writing values to the elements at given positions, the last of those that meet; and the keys that tell which do.

#include "indexing/ordered.cuh"

extern "C" __global__ void place_keys(const I *index, uint64 *keys, Walk outer, int64 lowest, int64 nowhere,
                                      int64 *device_asserts, int64 kind)
{
    int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= outer.n)
        return;
    Offsets at = locate(outer, i);
    int64 along = distance(outer, index[at.index], device_asserts, kind);
    keys[i] = along == NOWHERE ? nowhere : at.array + along - lowest;
}

// A thread for each inner element of each outer one.
extern "C" __global__ void write_last(T *array, const T *values, Ordered ordered, Walk outer, Walk inner)
{
    int64 at = (int64)blockIdx.x * blockDim.x + threadIdx.x, i = at / inner.n;
    if (i >= outer.n || ordered.keys[i] == ordered.nowhere || meet(ordered, i, i + 1, outer.n))
        return;
    Offsets along = locate(inner, at % inner.n);
    array[place(ordered, i) + along.array] = values[locate(outer, ordered.order[i]).other + along.other];
}
