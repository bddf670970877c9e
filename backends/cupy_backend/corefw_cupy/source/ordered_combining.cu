// Combining values with the elements at given positions, those that meet in the order of the index array.
//
// The grid is cut into the dimensions that the index array steps through (outer) and the others (inner). Where an
// outer element lies in the array is a key; sorted, all those that meet are neighbours.

#include "positions.cuh"
#include "combining.cuh"

#ifndef V // of the values
#define V T
#endif

// Keys count from the `lowest` place in the array; that of an element out of bounds is `nowhere`.
extern "C" __global__ void element_keys(const I *index, uint64 *keys, Walk outer, int64 lowest, int64 nowhere,
                                        int64 *faults, int64 kind)
{
    int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= outer.n)
        return;
    Offsets at = locate(outer, i);
    int64 along = distance(outer, index[at.index], faults, kind);
    keys[i] = along < 0 ? nowhere : at.array + along - lowest;
}

// A thread for each inner element of each key.
extern "C" __global__ void combine_in_order(T *array, const V *values, const uint64 *keys, const uint32 *order,
                                            Walk outer, Walk inner, Factor<T>::type factor, int64 lowest, int64 nowhere)
{
    int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x, first = i / inner.n;
    if (first >= outer.n)
        return;
    uint64 key = keys[first];
    if (key == nowhere || (first && keys[first - 1] == key))
        return;
    Offsets along = locate(inner, i % inner.n);
    T *element = array + (int64)key + lowest + along.array, combined = *element;
    for (int64 k = first; k < outer.n && keys[k] == key; ++k) {
        T value = T(values[locate(outer, order[k]).other + along.other]);
        combined = REDUCE::of(combined, T(value * T(factor)));
    }
    *element = combined;
}
