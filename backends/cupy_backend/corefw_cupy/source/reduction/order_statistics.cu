// The element of a rank in each row, found digit by digit from the highest: its value and its place.

#include "core/block.cuh"
#include "sorting/element_keys.cuh"

#define THREADS 256 // one for each value of a digit
#define DIGIT 8     // bits

// Which rank is sought of `n` elements, of which `numbers` are not NaN.
struct Kth {
    static const bool nan_first = false;
    __device__ static int64 rank(int64 n, int64 numbers, int64 k) { return k - 1; }
};
struct Median {
    static const bool nan_first = true;
    __device__ static int64 rank(int64 n, int64 numbers, int64) { return (n - 1) / 2; }
};
struct Nanmedian {
    static const bool nan_first = false;
    __device__ static int64 rank(int64 n, int64 numbers, int64) { return numbers > 0 ? (numbers - 1) / 2 : 0; }
};

struct Least {
    template <class Number> __device__ static Number of(Number a, Number b) { return a < b ? a : b; }
};

// The key of rank `rank`, which becomes its rank among equal ones.
__device__ Key key_of_rank(const T *row, int64 n, int64 &rank)
{
    __shared__ uint32 counts[THREADS];
    __shared__ Key chosen;
    __shared__ int64 left;
    Key found = 0, known = 0; // the digits that are known already, and where they are
    for (int shift = 8 * sizeof(Key) - DIGIT; shift >= 0; shift -= DIGIT) {
        counts[threadIdx.x] = 0;
        __syncthreads();
        for (int64 i = threadIdx.x; i < n; i += THREADS) {
            Key key = key_of(row[i]);
            if ((key & known) == found)
                atomicAdd(&counts[key >> shift & (THREADS - 1)], 1u);
        }
        __syncthreads();
        int64 own = counts[threadIdx.x], total, before = preceding<Add>(own, int64(0), THREADS, total);
        if (before <= rank && rank < before + own) {
            chosen = Key(threadIdx.x) << shift;
            left = rank - before;
        }
        __syncthreads();
        found |= chosen;
        known |= Key(THREADS - 1) << shift;
        rank = left;
    }
    return found;
}

extern "C" __global__ void __launch_bounds__(THREADS)
select_ranks(const T *input, int64 n, int64 k, T *values, int64 *places)
{
    __shared__ int64 place;
    const T *row = input + blockIdx.x * n;
    int64 first_nan = n, numbers = 0;
    for (int64 i = threadIdx.x; i < n; i += THREADS) {
        if (not_a_number(row[i]))
            first_nan = Least::of(first_nan, i);
        else
            ++numbers;
    }
    first_nan = combine_block<Least>(first_nan, n);
    numbers = combine_block<Add>(numbers, int64(0));
    if (RULE::nan_first && first_nan < n) {
        if (threadIdx.x == 0)
            place = first_nan;
    } else {
        int64 rank = RULE::rank(n, numbers, k), seen = 0;
        Key key = key_of_rank(row, n, rank);
        for (int64 first = 0; seen <= rank && first < n; first += THREADS) { // its place among equal elements
            int64 i = first + threadIdx.x, equal = i < n && key_of(row[i]) == key, total;
            int64 before = seen + preceding<Add>(equal, int64(0), THREADS, total);
            if (equal && before == rank)
                place = i;
            seen += total;
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        values[blockIdx.x] = row[place];
        places[blockIdx.x] = place;
    }
}
