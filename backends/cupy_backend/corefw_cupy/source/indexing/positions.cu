// Reading and writing the elements at given positions, and the offsets of elements that several index arrays give.

#include "indexing/positions.cuh"

extern "C" __global__ void read_at(const T *array, const I *index, T *out, Walk walk, int64 *device_asserts, int64 kind)
{
    int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= walk.n)
        return;
    Offsets at = locate(walk, i);
    int64 along = distance(walk, index[at.index], device_asserts, kind);
    if (along != NOWHERE)
        out[at.other] = array[at.array + along];
}

extern "C" __global__ void write_at(T *array, const I *index, const T *values, Walk walk, int64 *device_asserts, int64 kind)
{
    int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= walk.n)
        return;
    Offsets at = locate(walk, i);
    int64 along = distance(walk, index[at.index], device_asserts, kind);
    if (along != NOWHERE)
        array[at.array + along] = values[at.other];
}
