// Elements in the order of the places that they are for.
//
// The grid is cut into the dimensions that the index array steps through (outer) and the others (inner). Where an
// outer element lies in the array is its key, counted from the lowest place; sorted, those that meet are neighbours.

#include "indexing/positions.cuh"

struct Ordered {
    const uint64 *keys;  // sorted
    const uint32 *order; // the outer elements that have them
    int64 lowest;        // the place that key 0 stands for
    int64 nowhere;       // the key of what is out of bounds
};

__device__ inline int64 place(const Ordered &ordered, int64 i)
{
    return (int64)ordered.keys[i] + ordered.lowest;
}

// Whether the outer elements `i` and `other` are for one place.
__device__ inline bool meet(const Ordered &ordered, int64 i, int64 other, int64 n)
{
    return other >= 0 && other < n && ordered.keys[i] == ordered.keys[other];
}
