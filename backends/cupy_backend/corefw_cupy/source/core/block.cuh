// What the threads of a warp or a block compute together.

#include "core/types.cuh"

#define WARP 32
#define EVERY_LANE 0xffffffffu

struct Add {
    template <class Number> __device__ static Number of(Number a, Number b) { return a + b; }
};

// The greater one; NaN wins.
struct Greater {
    template <class Number> __device__ static Number of(Number a, Number b) { return a > b || a != a ? a : b; }
};

// The word that a lane gives: that whose number differs by the bits `flipped`; that `distance` before, for the first
// ones their own; or a certain one.
struct Flipped {
    __device__ static int32 word(int32 own, int flipped) { return __shfl_xor_sync(EVERY_LANE, own, flipped); }
};
struct Before {
    __device__ static int32 word(int32 own, int distance) { return __shfl_up_sync(EVERY_LANE, own, distance); }
};
struct Numbered {
    __device__ static int32 word(int32 own, int lane) { return __shfl_sync(EVERY_LANE, own, lane); }
};

// A value of any type from another lane, word by word.
template <class Lane, class Value> __device__ Value exchanged(Value value, int which)
{
    static_assert(sizeof(Value) % sizeof(int32) == 0, "lanes exchange whole words");
    int32 *words = (int32 *)&value;
#pragma unroll
    for (int k = 0; k < sizeof(Value) / sizeof(int32); ++k)
        words[k] = Lane::word(words[k], which);
    return value;
}

// `value` of `lanes` neighbours in a warp combined, a power of two; each of them gets the result.
template <class Combine, class Value> __device__ Value combine_warp(Value value, int lanes = WARP)
{
    for (int distance = lanes / 2; distance; distance /= 2)
        value = Combine::of(value, exchanged<Flipped>(value, distance));
    return value;
}

// `value` of all threads of a block combined; every thread gets the result. The number of threads is a multiple of
// WARP, and `neutral` combined with anything is that thing.
template <class Combine, class Value> __device__ Value combine_block(Value value, Value neutral)
{
    __shared__ Value of_warps[WARP];
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    value = combine_warp<Combine>(value);
    if (warps == 1)
        return value;
    if (lane == 0)
        of_warps[warp] = value;
    __syncthreads();
    value = combine_warp<Combine>(lane < warps ? of_warps[lane] : neutral);
    __syncthreads(); // of_warps may be written again
    return value;
}

// What the threads before this one combine to, of `lanes` neighbours in a warp or of all in a block; and `total`, all
// of them.
template <class Combine, class Value> __device__ Value preceding(Value value, Value neutral, int lanes, Value &total)
{
    __shared__ Value of_warps[WARP];
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    for (int distance = 1; distance < lanes && distance < WARP; distance *= 2) {
        Value other = exchanged<Before>(value, distance);
        if (lane >= distance)
            value = Combine::of(other, value);
    }
    Value before = exchanged<Before>(value, 1);
    if (lane == 0)
        before = neutral;
    if (lanes <= WARP) {
        total = exchanged<Numbered>(value, threadIdx.y * lanes % WARP + lanes - 1);
        return before;
    }
    if (lane == WARP - 1)
        of_warps[warp] = value;
    __syncthreads();
    Value earlier = total = neutral;
    for (int w = 0; w < lanes / WARP; ++w) {
        if (w == warp)
            earlier = total;
        total = Combine::of(total, of_warps[w]);
    }
    __syncthreads(); // of_warps may be written again
    return Combine::of(earlier, before);
}
