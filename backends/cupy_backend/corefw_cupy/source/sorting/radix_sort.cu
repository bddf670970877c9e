// One pass of a radix sort of rows: keys and their positions into the order of one digit, equal ones as they came.
//
// A row is cut into tiles, one for each block, and a tile into parts, one for each warp.

#include "sorting/ranks.cuh"

#define DIGITS 256 // also the number of threads
#define WARPS (DIGITS / WARP)
#define ROUNDS 16 // elements of a thread
#define TILE (DIGITS * ROUNDS)

__device__ inline int digit_of(KEY key, int64 shift)
{
    return key >> shift & (DIGITS - 1);
}

// How many keys of each digit each tile has: counts[row][digit][tile].
extern "C" __global__ void count_digits(const KEY *keys, int64 n, int64 tiles, int64 shift, int64 *counts)
{
    __shared__ int histogram[DIGITS];
    int64 row = blockIdx.x / tiles, tile = blockIdx.x % tiles;
    int64 first = tile * TILE + threadIdx.x;
    histogram[threadIdx.x] = 0;
    KEY own[ROUNDS];
#pragma unroll
    for (int round = 0; round < ROUNDS; ++round)
        own[round] = first + round * DIGITS < n ? keys[row * n + first + round * DIGITS] : KEY(0);
    __syncthreads();
#pragma unroll
    for (int round = 0; round < ROUNDS; ++round)
        if (first + round * DIGITS < n)
            atomicAdd(&histogram[digit_of(own[round], shift)], 1);
    __syncthreads();
    counts[(row * DIGITS + threadIdx.x) * tiles + tile] = histogram[threadIdx.x];
}

// `before` has, instead of the counts, how many keys of a digit come in earlier tiles; `totals` those of all tiles.
// Without `positions`, the keys are where they were at first.
extern "C" __global__ void sort_digits(const KEY *keys, const uint32 *positions, int64 n, int64 tiles, int64 shift,
                                       const int64 *before, const int64 *totals, KEY *sorted_keys,
                                       uint32 *sorted_positions)
{
    __shared__ uint32 counts[WARPS][DIGITS]; // of each digit, those that a warp has seen; then where its first one goes
    int64 row = blockIdx.x / tiles, tile = blockIdx.x % tiles, all;
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, digit = threadIdx.x;
    for (int w = 0; w < WARPS; ++w)
        counts[w][digit] = 0;
    uint32 start = sum_before(totals[row * DIGITS + digit], all) + before[(row * DIGITS + digit) * tiles + tile];
    int64 first = tile * TILE + warp * (TILE / WARPS) + lane;
    KEY own[ROUNDS];
    uint32 ranks[ROUNDS]; // among the keys of the same digit and warp
#pragma unroll
    for (int round = 0; round < ROUNDS; ++round)
        own[round] = first + round * WARP < n ? keys[row * n + first + round * WARP] : KEY(0);
#pragma unroll
    for (int round = 0; round < ROUNDS; ++round) {
        int64 i = first + round * WARP;
        int found = digit_of(own[round], shift);
        uint32 same = __ballot_sync(EVERY_LANE, i < n);
        for (int bit = 1; bit < DIGITS; bit *= 2) {
            uint32 set = __ballot_sync(EVERY_LANE, found & bit);
            same &= found & bit ? set : ~set;
        }
        uint32 earlier = same & ((1u << lane) - 1);
        ranks[round] = counts[warp][found] + __popc(earlier);
        __syncwarp();
        if (i < n && !earlier)
            counts[warp][found] += __popc(same);
        __syncwarp();
    }
    __syncthreads();
    for (int w = 0; w < WARPS; ++w) {
        uint32 count = counts[w][digit];
        counts[w][digit] = start;
        start += count;
    }
    __syncthreads();
#pragma unroll
    for (int round = 0; round < ROUNDS; ++round) {
        int64 i = first + round * WARP;
        if (i >= n)
            continue;
        int64 to = row * n + counts[warp][digit_of(own[round], shift)] + ranks[round];
        sorted_keys[to] = own[round];
        sorted_positions[to] = positions ? positions[row * n + i] : i;
    }
}
