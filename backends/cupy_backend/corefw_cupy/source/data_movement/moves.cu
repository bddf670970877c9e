// Copies whose elements come from other positions: shifted along dimensions, with what lies beyond, or cut off.

#include "core/types.cuh"
#include "core/mathematics.cuh"
#include "core/division.cuh"

#define MAX_DIMS 16

// How a row-major result reads its input: position i of a dimension reads position i + offset of `limits` that there
// are.
template <class Size> struct Walk {
    int64 n;
    int64 dims;
    Divisor<Size> sizes[MAX_DIMS];
    Size strides[MAX_DIMS];
    Size offsets[MAX_DIMS];
    Size limits[MAX_DIMS];
};

extern "C" __global__ void roll(const T *input, T *out, Walk<SIZE> walk)
{
    int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= walk.n)
        return;
    SIZE rest = i, from = 0;
    for (int dim = walk.dims - 1; dim >= 0; --dim) {
        SIZE along = take_innermost(rest, walk.sizes[dim]) + walk.offsets[dim];
        from += (along < walk.limits[dim] ? along : along - walk.limits[dim]) * walk.strides[dim];
    }
    out[i] = input[from];
}

// The value of the border comes as its bytes.
extern "C" __global__ void constant_pad(const T *input, T *out, Walk<SIZE> walk, int64 low, int64 high)
{
    int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= walk.n)
        return;
    SIZE rest = i, from = 0;
    bool inside = true;
    for (int dim = walk.dims - 1; dim >= 0; --dim) {
        SIZE along = take_innermost(rest, walk.sizes[dim]) + walk.offsets[dim];
        inside &= along >= 0 && along < walk.limits[dim];
        from += along * walk.strides[dim];
    }
    out[i] = inside ? input[from] : from_bits<T>(low, high);
}

// What lies on one side of a diagonal of the two innermost dimensions, with zeros on the other side.
extern "C" __global__ void triangle(const T *input, T *out, Walk<SIZE> walk, int64 diagonal, bool lower)
{
    int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= walk.n)
        return;
    SIZE rest = i, from = 0, row = 0, column = 0;
    for (int dim = walk.dims - 1; dim >= 0; --dim) {
        SIZE along = take_innermost(rest, walk.sizes[dim]);
        from += along * walk.strides[dim];
        if (dim == walk.dims - 1)
            column = along;
        else if (dim == walk.dims - 2)
            row = along;
    }
    int64 beyond = (int64)column - row - diagonal;
    out[i] = (lower ? beyond <= 0 : beyond >= 0) ? input[from] : from_bits<T>(0, 0);
}
