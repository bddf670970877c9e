// Combining values with the elements at given positions; equal positions may meet in any order.

#include "indexing/positions.cuh"
#include "indexing/combining.cuh"

#ifndef V // of the values
#define V T
#endif

extern "C" __global__ void combine_at(T *array, const I *index, const V *values, Walk walk, Factor<T>::type factor,
                                      int64 *device_asserts, int64 kind)
{
    Element element(walk, index, device_asserts, kind);
    if (element.exists)
        Update<REDUCE, T>::at(array + element.array, T(T(values[element.other]) * T(factor)));
}
