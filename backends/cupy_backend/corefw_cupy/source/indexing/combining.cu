// Combining values with the elements at given positions; equal positions may meet in any order.

#include "indexing/positions.cuh"
#include "indexing/combining.cuh"

#ifndef V // of the values
#define V T
#endif

extern "C" __global__ void combine_at(T *array, const I *index, const V *values, Walk walk, Factor<T>::type factor,
                                      int64 *device_asserts, int64 kind)
{
    int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= walk.n)
        return;
    Offsets at = locate(walk, i);
    int64 along = distance(walk, index[at.index], device_asserts, kind);
    if (along != NOWHERE)
        Update<REDUCE, T>::at(array + at.array + along, T(T(values[at.other]) * T(factor)));
}
