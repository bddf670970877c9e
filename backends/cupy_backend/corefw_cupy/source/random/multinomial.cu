// Draws in proportion to weights, as docs/random.md defines them.

#include "random/philox.cuh"
#include "random/randomness.cuh"
#include "core/block.cuh"

#define MOST_THREADS 256

struct Less {
    template <class Number> __device__ static Number of(Number a, Number b) { return a < b ? a : b; }
};

// When the weight at the row-major index i arrives.
__device__ inline double arrival(T weight, const Part &part, int64 i)
{
    return -log_of_fraction(Grid<double>::open(part.long_word(i))) / (double)(A)weight;
}

// The sums of each row's weights from the first on, by a block for each row. They never descend, and where a weight is
// zero they stay: a thread sums neighbours, and begins with what the thread before it ends with.
extern "C" __global__ void row_sums(const T *weights, double *sums, int64 count)
{
    __shared__ double before[MOST_THREADS];
    weights += blockIdx.x * count;
    sums += blockIdx.x * count;
    int64 share = (count + blockDim.x - 1) / blockDim.x, begin = threadIdx.x * share;
    int64 end = begin + share < count ? begin + share : count;
    double sum = 0;
    for (int64 i = begin; i < end; ++i)
        sum += (double)(A)weights[i];
    before[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        double total = 0;
        for (int t = 0; t < blockDim.x; ++t) {
            double own = before[t];
            before[t] = total;
            total += own;
        }
    }
    __syncthreads();
    sum = 0;
    for (int64 i = begin; i < end; ++i) {
        sum += (double)(A)weights[i];
        sums[i] = before[threadIdx.x] + sum;
    }
}

// With replacement: the first index whose sum is above U times the total.
extern "C" __global__ void draw_by_sums(const double *sums, int64 *out, int64 n, int64 count, int64 samples,
                                        uint64 seed, uint64 offset, const uint64 *state)
{
    int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    sums += i / samples * count;
    double target = Grid<double>::closed(Part(seed, offset, state).long_word(i)) * sums[count - 1];
    int64 first = 0;
    for (int64 last = count - 1; first < last;) {
        int64 middle = (first + last) / 2;
        if (sums[middle] <= target)
            first = middle + 1;
        else
            last = middle;
    }
    out[i] = first;
}

// Without replacement: when all weights arrive.
extern "C" __global__ void arrivals(const T *weights, double *times, int64 n, uint64 seed, uint64 offset, const uint64 *state)
{
    int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        times[i] = arrival(weights[i], {seed, offset, state}, i);
}

// The weight of each row that arrives first, by a block for each row.
extern "C" __global__ void first_arrival(const T *weights, int64 *out, int64 count, uint64 seed, uint64 offset, const uint64 *state)
{
    Part part(seed, offset, state);
    int64 row = blockIdx.x, index = count;
    double earliest = INFINITY;
    for (int64 i = threadIdx.x; i < count; i += blockDim.x) {
        double time = arrival(weights[row * count + i], part, row * count + i);
        if (time < earliest) {
            earliest = time;
            index = i;
        }
    }
    double first = combine_block<Less, double>(earliest, INFINITY);
    index = combine_block<Less, int64>(earliest == first ? index : count, count);
    if (threadIdx.x == 0)
        out[row] = index < count ? index : 0;
}
