// The last step of sums that were split over blocks.

#include "core/types.cuh"
#include "core/complex.cuh"

typedef Sum<T>::type Number;

// The sum of what the blocks of a split sum left, in order, and the bias of each channel.
extern "C" __global__ void join_splits(const Number *partial, const T *bias, T *out, int64 n, int64 splits,
                                       int64 channels, int64 size)
{
    int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    Number sum = bias ? (Number)bias[i / size % channels] : Number(0);
    for (int64 split = 0; split < splits; ++split)
        sum = sum + partial[split * n + i];
    out[i] = (T)sum;
}
