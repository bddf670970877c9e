// Exclusive sums, which tell elements how many come before them.

#include "core/types.cuh"
#include "core/block.cuh"

// The sum of `value` over the lanes up to this one.
__device__ inline int64 running_sum_warp(int64 value)
{
    int lane = threadIdx.x % WARP;
    for (int distance = 1; distance < WARP; distance *= 2) {
        int64 below = __shfl_up_sync(EVERY_LANE, value, distance);
        if (lane >= distance)
            value += below;
    }
    return value;
}

// The sum of `value` over the threads of a block before this one, and the sum over all. The number of threads is a
// multiple of WARP. What threads wrote to shared memory before, all of them see after.
__device__ inline int64 sum_before(int64 value, int64 &total)
{
    __shared__ int64 of_warps[WARP];
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    int64 sum = running_sum_warp(value);
    if (lane == WARP - 1)
        of_warps[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        int64 sums = running_sum_warp(lane < warps ? of_warps[lane] : 0);
        __syncwarp();
        of_warps[lane] = sums;
    }
    __syncthreads();
    int64 before = warp ? of_warps[warp - 1] : 0;
    total = of_warps[warps - 1];
    __syncthreads(); // of_warps may be written again
    return before + sum - value;
}
