// Where the elements lie that several index arrays give together.

#include "core/types.cuh"
#include "core/device_asserts.cuh"

#define MAX_DIMS 16

struct Indices {
    int64 n, dims, count;
    int64 sizes[MAX_DIMS];             // of what the index arrays are broadcast to
    const int64 *arrays[MAX_DIMS];     // `count` of them
    int64 strides[MAX_DIMS][MAX_DIMS]; // of each
    int64 size[MAX_DIMS], step[MAX_DIMS], dim[MAX_DIMS]; // of the dimension that each is for
};

// The distance of each element from the first one, -1 where a position is out of bounds.
extern "C" __global__ void combine_indices(int64 *offsets, Indices indices, int64 *device_asserts, int64 kind)
{
    int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= indices.n)
        return;
    int64 offset = 0;
    for (int k = 0; k < indices.count && offset >= 0; ++k) {
        int64 rest = i, at = 0;
        for (int dim = indices.dims - 1; dim >= 0; --dim) {
            at += rest % indices.sizes[dim] * indices.strides[k][dim];
            rest /= indices.sizes[dim];
        }
        int64 found = position(indices.arrays[k][at], indices.size[k], indices.dim[k], device_asserts, kind);
        offset = found < 0 ? -1 : offset + found * indices.step[k];
    }
    offsets[i] = offset;
}
