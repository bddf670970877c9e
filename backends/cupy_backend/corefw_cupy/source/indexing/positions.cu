// Reading and writing the elements at given positions, and the offsets of elements that several index arrays give.

#include "indexing/positions.cuh"

extern "C" __global__ void read_at(const T *array, const I *index, T *out, Walk walk, int64 *device_asserts, int64 kind)
{
    Element element(walk, index, device_asserts, kind);
    if (element.exists)
        out[element.other] = array[element.array];
}

extern "C" __global__ void write_at(T *array, const I *index, const T *values, Walk walk, int64 *device_asserts, int64 kind)
{
    Element element(walk, index, device_asserts, kind);
    if (element.exists)
        array[element.array] = values[element.other];
}
