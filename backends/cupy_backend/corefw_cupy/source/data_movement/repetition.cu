// The positions of a vector's elements, each as often as the element says: sums of the repeats up to each position, in
// chunks of one block, then a search for every place of the result.

#include "core/types.cuh"
#include "core/block.cuh"
#include "core/device_asserts.cuh"

#define CHUNK 4096 // as in joining.py

__device__ inline int64 sum_of_block(int64 value)
{
    return combine_block<Add>(value, (int64)0);
}

extern "C" __global__ void sum_chunks(const T *repeats, int64 *sums, int64 n, int64 *device_asserts, int64 kind)
{
    int64 first = (int64)blockIdx.x * CHUNK, sum = 0;
    for (int64 i = first + threadIdx.x; i < n && i < first + CHUNK; i += blockDim.x) {
        if (repeats[i] < T(0))
            report(device_asserts, kind, repeats[i], i, n);
        sum += repeats[i];
    }
    sum = sum_of_block(sum);
    if (threadIdx.x == 0)
        sums[blockIdx.x] = sum;
}

// ends[i] is the sum of the repeats up to and with position i.
extern "C" __global__ void find_ends(const T *repeats, const int64 *sums, int64 *ends, int64 n)
{
    __shared__ int64 of_warps[WARP];
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    int64 first = (int64)blockIdx.x * CHUNK, before = 0;
    for (int64 block = threadIdx.x; block < blockIdx.x; block += blockDim.x)
        before += sums[block];
    before = sum_of_block(before);
    for (int64 start = first; start < n && start < first + CHUNK; start += blockDim.x) {
        int64 i = start + threadIdx.x, end = i < n ? (int64)repeats[i] : 0;
        for (int distance = 1; distance < WARP; distance *= 2) {
            int64 left = __shfl_up_sync(EVERY_LANE, end, distance);
            if (lane >= distance)
                end += left;
        }
        if (lane == WARP - 1)
            of_warps[warp] = end;
        __syncthreads();
        int64 total = 0;
        for (int other = 0; other < blockDim.x / WARP; ++other) {
            if (other == warp)
                end += total;
            total += of_warps[other];
        }
        if (i < n)
            ends[i] = before + end;
        before += total;
        __syncthreads(); // of_warps may be written again
    }
}

extern "C" __global__ void repeat_positions(const int64 *ends, T *out, int64 n, int64 total)
{
    int64 place = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (place >= total)
        return;
    int64 low = 0, high = n - 1; // the first position whose end is behind the place
    while (low < high) {
        int64 middle = (low + high) / 2;
        if (ends[middle] > place)
            high = middle;
        else
            low = middle + 1;
    }
    out[place] = T(low);
}
