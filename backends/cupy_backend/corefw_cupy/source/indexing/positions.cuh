// Elements of an array at the positions that an index array gives along one of its dimensions.

#include "core/types.cuh"
#include "core/device_asserts.cuh"
#include "core/division.cuh"

#define MAX_DIMS 16

// A grid of elements, and how the array that is indexed, the index array and a third one are stepped through: the
// strides of the array are 0 along the dimensions of the index array, whose positions step through it instead.
struct Walk {
    int64 n, dims;
    int64 size, step; // of the indexed dimension
    int64 wrap;       // what is added to negative positions
    int64 dim;        // the number by which errors call it
    Divisor<SIZE> sizes[MAX_DIMS];
    SIZE array[MAX_DIMS], index[MAX_DIMS], other[MAX_DIMS];
};

struct Offsets {
    SIZE array, index, other;
};

// Where element `i` of the grid lies.
__device__ inline Offsets locate(const Walk &walk, int64 i)
{
    Offsets at = {0, 0, 0};
    SIZE rest = i;
    for (int dim = walk.dims - 1; dim >= 0; --dim) {
        SIZE along = take_innermost(rest, walk.sizes[dim]);
        at.array += along * walk.array[dim];
        at.index += along * walk.index[dim];
        at.other += along * walk.other[dim];
    }
    return at;
}

#define NOWHERE (-0x7fffffffffffffffLL - 1) // no distance: those in a dimension that lies backwards are negative

// How far from the start of its dimension the element at a position lies, or NOWHERE; reported unless `kind` is 0.
__device__ inline int64 distance(const Walk &walk, int64 index, int64 *device_asserts, int64 kind)
{
    int64 position = index < 0 ? index + walk.wrap : index;
    if (position >= 0 && position < walk.size)
        return position * walk.step;
    if (kind)
        report(device_asserts, kind, index, walk.dim, walk.size);
    return NOWHERE;
}

// What this thread's position stands for: where in the array and in the third one; `exists` is false behind the last
// position and for one that is out of range.
struct Element {
    bool exists = false;
    int64 array, other;

    template <class Index>
    __device__ Element(const Walk &walk, const Index *index, int64 *device_asserts, int64 kind)
    {
        int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
        if (i >= walk.n)
            return;
        Offsets at = locate(walk, i);
        int64 along = distance(walk, index[at.index], device_asserts, kind);
        exists = along != NOWHERE;
        array = at.array + along;
        other = at.other;
    }
};
