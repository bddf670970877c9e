// Pooling by the maximum: LANES threads search a window; the gradients of a stretch of elements are added up by a block.

#include "core/types.cuh"
#include "core/block.cuh"
#include "core/device_asserts.cuh"
#include "pooling/windows.cuh"

#ifndef LANES
#define LANES 1
#endif

#define ELEMENTS 4096 // of the input whose gradient a block adds up at most, as in pooling.py

typedef Compute<T>::type Value;

struct Pooling {
    int64 n; // results
    Axis<SIZE> axes[SPATIAL];
};

template <class Number> __device__ Number lowest()
{
    if constexpr (Number(0.5f) != 0)
        return -INFINITY;
    else
        return Number(-1) < 0 ? Number(1ull << (8 * sizeof(Number) - 1)) : Number(0);
}

// The largest element so far and its position in the plane.
struct Largest {
    Value value;
    SIZE at;
};

// What comes later wins only if it is larger; of NaNs the last one.
__device__ inline void improve(Largest &best, Value value, SIZE at)
{
    if (value > best.value || value != value)
        best = {value, at};
}

// The one of two that a search through both finds: the smaller position of equal ones, the greater one of NaNs.
__device__ inline Largest better(Largest a, Largest b)
{
    bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
    if (a_is_nan || b_is_nan)
        return b_is_nan && (!a_is_nan || b.at > a.at) ? b : a;
    return b.value > a.value || (b.value == a.value && b.at < a.at) ? b : a;
}

__device__ inline Largest better_of_warp(Largest best)
{
    for (int distance = WARP / 2; distance; distance /= 2) {
        Value value = __shfl_xor_sync(EVERY_LANE, best.value, distance);
        best = better(best, {value, __shfl_xor_sync(EVERY_LANE, best.at, distance)});
    }
    return best;
}

__device__ inline Largest combined(Largest best)
{
    if constexpr (LANES > 1)
        best = better_of_warp(best);
    if constexpr (LANES > WARP) {
        __shared__ Value values[WARP];
        __shared__ SIZE positions[WARP];
        int warp = threadIdx.x / WARP;
        values[warp] = best.value;
        positions[warp] = best.at;
        __syncthreads();
        for (int other = 0; other < LANES / WARP; ++other)
            best = better(best, {values[other], positions[other]});
    }
    return best;
}

extern "C" __global__ void max_pool(const T *input, T *values, int64 *indices, Pooling pooling)
{
    int64 i = ((int64)blockIdx.x * blockDim.x + threadIdx.x) / LANES;
    int lane = threadIdx.x % LANES;
    if (i >= pooling.n)
        return;
    SIZE plane = i, sizes[SPATIAL], steps[SPATIAL];
    Span<SIZE> parts[SPATIAL];
#pragma unroll
    for (int axis = SPATIAL - 1; axis >= 0; --axis) {
        const Axis<SIZE> &along = pooling.axes[axis];
        parts[axis] = inside(along, window(along, take_innermost(plane, along.count)));
        sizes[axis] = along.size.value;
        steps[axis] = along.dilation;
    }
    const T *from = input + (int64)plane * sizes[0] * sizes[1] * sizes[2];
    Largest best = {lowest<Value>(), (parts[0].begin * sizes[1] + parts[1].begin) * sizes[2] + parts[2].begin};
    if constexpr (LANES == 1) {
        for (SIZE z = parts[0].begin; z < parts[0].end; z += steps[0])
            for (SIZE y = parts[1].begin; y < parts[1].end; y += steps[1])
                for (SIZE x = parts[2].begin; x < parts[2].end; x += steps[2]) {
                    SIZE at = (z * sizes[1] + y) * sizes[2] + x;
                    improve(best, from[at], at);
                }
    } else {
        uint32 taken[SPATIAL];
        for (int axis = 0; axis < SPATIAL; ++axis)
            taken[axis] = max((parts[axis].end - parts[axis].begin + steps[axis] - 1) / steps[axis], SIZE(0));
        for (uint32 k = lane; k < taken[0] * taken[1] * taken[2]; k += LANES) {
            uint32 row = k / taken[2], layer = row / taken[1];
            SIZE x = parts[2].begin + (k - row * taken[2]) * steps[2];
            SIZE y = parts[1].begin + (row - layer * taken[1]) * steps[1], z = parts[0].begin + layer * steps[0];
            SIZE at = (z * sizes[1] + y) * sizes[2] + x;
            improve(best, from[at], at);
        }
    }
    best = combined(best);
    if (lane == 0) {
        values[i] = T(best.value);
        indices[i] = best.at;
    }
}

// Whether an index is one of the plane's; if not, it is reported.
__device__ inline bool is_of_plane(int64 index, int64 plane, int64 *device_asserts, int64 kind)
{
    if (index >= 0 && index < plane)
        return true;
    report(device_asserts, kind, index, 2, plane);
    return false;
}

// The lowest and the highest index of every batch of windows (as many as a block has threads) of a plane.
extern "C" __global__ void bound_indices(
    const int64 *indices, int64 *bounds, int64 plane, int64 windows, int64 batches, int64 *device_asserts, int64 kind)
{
    int64 number = blockIdx.x / batches, batch = blockIdx.x - number * batches;
    int64 w = min(batch * blockDim.x + threadIdx.x, windows - 1), index = indices[number * windows + w];
    is_of_plane(index, plane, device_asserts, kind);
    int64 negative_lowest = combine_block<Greater>(-index, -index);
    int64 highest = combine_block<Greater>(index, index);
    if (threadIdx.x == 0) {
        bounds[2 * blockIdx.x] = -negative_lowest;
        bounds[2 * blockIdx.x + 1] = highest;
    }
}

// How the elements of all planes are shared among blocks: some whole planes for each, or a part of one.
struct Shares {
    int64 planes, plane, windows; // in all, elements and windows of each
    int64 planes_of_block;
    int64 parts, part; // of a plane, elements of each
};

// What the elements of a block get from the windows whose maximum they are, in the order of the windows. Of several
// threads whose windows found the same element, the first one writes first: in every round each of them claims the
// element, and whoever has won goes on.
extern "C" __global__ void max_pool_backward(
    const T *grad, const int64 *indices, T *out, Shares shares, const int64 *bounds, int64 *device_asserts, int64 kind)
{
    typedef Sum<T>::type Total;
    __shared__ Total totals[ELEMENTS];
    __shared__ uint32 claims[ELEMENTS];
    int64 group = blockIdx.x / shares.parts, begin = (blockIdx.x - group * shares.parts) * shares.part;
    int64 first = group * shares.planes_of_block, planes = min(shares.planes_of_block, shares.planes - first);
    int64 length = min(shares.part, planes * shares.plane - begin), windows = planes * shares.windows;
    int64 batches = (windows + blockDim.x - 1) / blockDim.x;
    const uint32 threads = blockDim.x, rounds = 0xffffffffu / threads - threads;
    uint32 round = rounds; // all claims are given up when they run out
    for (int64 k = threadIdx.x; k < length; k += threads)
        totals[k] = 0;
    grad += first * shares.windows;
    indices += first * shares.windows;
    for (int64 batch = 0; batch < batches; ++batch) {
        if (bounds) {
            const int64 *reach = bounds + 2 * (first * batches + batch);
            if (reach[0] >= begin + length || reach[1] < begin)
                continue;
        }
        if (round >= rounds) { // which all know to be the case, and nobody reads claims
            for (int64 k = threadIdx.x; k < length; k += threads)
                claims[k] = 0;
            round = 0;
            __syncthreads();
        }
        int64 w = batch * threads + threadIdx.x, target = -1;
        if (w < windows) {
            int64 index = indices[w];
            if (is_of_plane(index, shares.plane, device_asserts, kind))
                target = w / shares.windows * shares.plane + index - begin;
        }
        bool waits = target >= 0 && target < length;
        Total share = waits ? Total(grad[w]) : Total(0);
        do {
            ++round;
            uint32 claim = round * threads + threads - 1 - threadIdx.x;
            if (waits)
                atomicMax(&claims[target], claim);
            __syncthreads();
            if (waits && claims[target] == claim) {
                totals[target] += share;
                waits = false;
            }
        } while (__syncthreads_or(waits));
    }
    out += first * shares.plane + begin;
    for (int64 k = threadIdx.x; k < length; k += threads)
        out[k] = T(totals[k]);
}
