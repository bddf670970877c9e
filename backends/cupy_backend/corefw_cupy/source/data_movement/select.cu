// The first elements of long rows in order, by radix selection: digit by digit, from the highest, the key of the last
// one that is chosen. A block for each row.

#include "sorting/keys.cuh"
#include "sorting/ranks.cuh"

#define DIGITS 256
#define RUN 8 // elements that a thread looks at at once

// How many elements of the row have each digit at `shift`, among those whose higher digits are those of `key`.
template <class Key>
__device__ void count_digits(const T *row, int64 n, Key key, int shift, bool descending, uint32 *histogram)
{
    for (int64 first = threadIdx.x; first < n; first += RUN * blockDim.x) {
        Key own[RUN];
#pragma unroll
        for (int k = 0; k < RUN; ++k)
            own[k] = first + k * blockDim.x < n ? sort_key(row[first + k * blockDim.x], descending) : Key(0);
#pragma unroll
        for (int k = 0; k < RUN; ++k)
            if (first + k * blockDim.x < n && (uint64)(own[k] ^ key) >> shift >> 8 == 0)
                atomicAdd(&histogram[own[k] >> shift & (DIGITS - 1)], 1u);
    }
}

// Writes `k` values of each row and their positions, in the order of the positions; equal elements are taken as they
// come.
extern "C" __global__ void select_first(const T *input, T *values, int64 *positions, int64 n, int64 k, bool descending)
{
    typedef KeyOf<sizeof(T)>::type Key;
    __shared__ uint32 histogram[DIGITS], digit, before_digit;
    const T *row = input + blockIdx.x * n;
    Key last = 0;         // the key of the last one chosen, as far as it is known
    uint32 equal_ones = k; // how many elements with this key are chosen
    for (int shift = 8 * sizeof(Key) - 8; shift >= 0; shift -= 8) {
        for (int i = threadIdx.x; i < DIGITS; i += blockDim.x)
            histogram[i] = 0;
        __syncthreads();
        count_digits(row, n, last, shift, descending, histogram);
        __syncthreads();
        int64 count = threadIdx.x < DIGITS ? histogram[threadIdx.x] : 0, all, before = sum_before(count, all);
        if (before < equal_ones && equal_ones <= before + count) {
            digit = threadIdx.x;
            before_digit = before;
        }
        __syncthreads();
        last |= (Key)digit << shift;
        equal_ones -= before_digit;
    }
    int64 less = 0, equal = 0; // that were seen
    for (int64 first = 0; first < n; first += RUN * blockDim.x) {
        int64 own = first + threadIdx.x * RUN, end = own + RUN < n ? own + RUN : n;
        int64 counts = 0, all; // of lesser ones, and in the lower half of equal ones
        for (int64 i = own; i < end; ++i) {
            Key key = sort_key(row[i], descending);
            counts += key < last ? 1ll << 32 : key == last;
        }
        int64 before = sum_before(counts, all);
        int64 own_less = less + (before >> 32), own_equal = equal + (before & 0xffffffff);
        for (int64 i = own; i < end; ++i) {
            Key key = sort_key(row[i], descending);
            if (key > last)
                continue;
            if (key < last || own_equal < equal_ones) {
                int64 to = blockIdx.x * k + own_less + (own_equal < equal_ones ? own_equal : equal_ones);
                values[to] = row[i];
                positions[to] = i;
            }
            ++(key < last ? own_less : own_equal);
        }
        less += all >> 32;
        equal += all & 0xffffffff;
    }
}
