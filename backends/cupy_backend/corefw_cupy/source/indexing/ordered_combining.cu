// Combining values with the elements at given positions, those that meet in the order of the index array.

#include "indexing/ordered.cuh"
#include "indexing/combining.cuh"

#ifndef V // of the values
#define V T
#endif

// A thread for each inner element of each outer one; the first of those that meet does the work.
extern "C" __global__ void combine_in_order(T *array, const V *values, Ordered ordered, Walk outer, Walk inner,
                                            Factor<T>::type factor)
{
    int64 at = (int64)blockIdx.x * blockDim.x + threadIdx.x, first = at / inner.n;
    if (first >= outer.n || ordered.keys[first] == ordered.nowhere || meet(ordered, first, first - 1, outer.n))
        return;
    Offsets along = locate(inner, at % inner.n);
    T *element = array + place(ordered, first) + along.array, combined = *element;
    int64 i = first;
    do {
        T value = T(values[locate(outer, ordered.order[i]).other + along.other]);
        combined = REDUCE::of(combined, T(value * T(factor)));
    } while (meet(ordered, first, ++i, outer.n));
    *element = combined;
}
