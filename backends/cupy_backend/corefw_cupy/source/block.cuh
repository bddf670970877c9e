// What the threads of a warp or a block compute together.

#define WARP 32
#define EVERY_LANE 0xffffffffu

struct Add {
    template <class Number> __device__ static Number of(Number a, Number b) { return a + b; }
};

// The greater one; NaN wins.
struct Greater {
    template <class Number> __device__ static Number of(Number a, Number b) { return a > b || a != a ? a : b; }
};

// `value` of all lanes of a warp combined; every lane gets the result.
template <class Combine, class Number> __device__ Number combine_warp(Number value)
{
    for (int distance = WARP / 2; distance; distance /= 2)
        value = Combine::of(value, __shfl_xor_sync(EVERY_LANE, value, distance));
    return value;
}

// `value` of all threads of a block combined; every thread gets the result. The number of threads is a multiple of
// WARP, and `neutral` combined with anything is that thing.
template <class Combine, class Number> __device__ Number combine_block(Number value, Number neutral)
{
    __shared__ Number of_warps[WARP];
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
