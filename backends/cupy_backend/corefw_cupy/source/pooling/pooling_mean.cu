// Pooling by the mean: LANES threads add up a window; for the gradient a thread adds up the shares of an element.

#include "core/types.cuh"
#include "core/mathematics.cuh"
#include "core/block.cuh"
#include "pooling/windows.cuh"

#ifndef LANES
#define LANES 1
#endif

typedef Sum<T>::type Total;

struct Pooling {
    int64 n; // results
    Axis<SIZE> axes[SPATIAL];
    int64 padding_counts; // whether a window's padding counts as elements
    int64 divisor;        // instead of the number of elements, unless 0
};

// How many elements a window has along an axis.
__device__ inline SIZE length(const Pooling &pooling, int axis, Span<SIZE> window)
{
    const Axis<SIZE> &along = pooling.axes[axis];
    if (pooling.padding_counts)
        return min(window.end, along.size.value + along.padding) - window.begin;
    Span<SIZE> part = inside(along, window);
    return part.end - part.begin;
}

// Integers are cut off.
template <class Number> __device__ T mean(Number total, Number divisor)
{
    if constexpr (Number(0.5f) == 0)
        return T(trunc((float64)total / (float64)divisor));
    else
        return T(total / divisor);
}

__device__ inline Total combined(Total total)
{
    if constexpr (LANES == 1)
        return total;
    else if constexpr (LANES == WARP)
        return combine_warp<Add>(total);
    else
        return combine_block<Add>(total, Total(0));
}

extern "C" __global__ void avg_pool(const T *input, T *out, Pooling pooling)
{
    int64 i = ((int64)blockIdx.x * blockDim.x + threadIdx.x) / LANES;
    int lane = threadIdx.x % LANES;
    if (i >= pooling.n)
        return;
    SIZE plane = i, sizes[SPATIAL], divisor = 1;
    Span<SIZE> parts[SPATIAL];
#pragma unroll
    for (int axis = SPATIAL - 1; axis >= 0; --axis) {
        Span<SIZE> whole = window(pooling.axes[axis], take_innermost(plane, pooling.axes[axis].count));
        divisor *= length(pooling, axis, whole);
        parts[axis] = inside(pooling.axes[axis], whole);
        sizes[axis] = pooling.axes[axis].size.value;
    }
    const T *from = input + (int64)plane * sizes[0] * sizes[1] * sizes[2];
    Total total = 0;
    if constexpr (LANES == 1) {
        for (SIZE z = parts[0].begin; z < parts[0].end; ++z)
            for (SIZE y = parts[1].begin; y < parts[1].end; ++y)
                for (SIZE x = parts[2].begin; x < parts[2].end; ++x)
                    total += Total(from[(z * sizes[1] + y) * sizes[2] + x]);
    } else {
        uint32 width = max(parts[2].end - parts[2].begin, SIZE(0)), height = max(parts[1].end - parts[1].begin, SIZE(0));
        uint32 n = width * height * max(parts[0].end - parts[0].begin, SIZE(0));
        for (uint32 k = lane; k < n; k += LANES) {
            uint32 row = k / width, x = k - row * width, layer = row / height, y = row - layer * height;
            total += Total(from[((parts[0].begin + layer) * sizes[1] + parts[1].begin + y) * sizes[2] + parts[2].begin + x]);
        }
    }
    total = combined(total);
    if (lane == 0)
        out[i] = mean(total, Total(pooling.divisor ? pooling.divisor : divisor));
}

extern "C" __global__ void avg_pool_backward(const T *grad, T *out, Pooling pooling)
{
    int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= pooling.n)
        return;
    SIZE plane = i, counts[SPATIAL];
    Span<SIZE> around[SPATIAL];
#pragma unroll
    for (int axis = SPATIAL - 1; axis >= 0; --axis) {
        around[axis] = windows_around(pooling.axes[axis], take_innermost(plane, pooling.axes[axis].size));
        counts[axis] = pooling.axes[axis].count.value;
    }
    const T *from = grad + (int64)plane * counts[0] * counts[1] * counts[2];
    Total total = 0;
    for (SIZE z = around[0].begin; z < around[0].end; ++z) {
        SIZE depth = length(pooling, 0, window(pooling.axes[0], z));
        for (SIZE y = around[1].begin; y < around[1].end; ++y) {
            SIZE area = depth * length(pooling, 1, window(pooling.axes[1], y));
            for (SIZE x = around[2].begin; x < around[2].end; ++x) {
                SIZE divisor = area * length(pooling, 2, window(pooling.axes[2], x));
                total += Total(from[(z * counts[1] + y) * counts[2] + x]) /
                         Total(pooling.divisor ? pooling.divisor : divisor);
            }
        }
    }
    out[i] = T(total);
}
