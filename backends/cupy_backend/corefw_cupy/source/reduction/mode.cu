// The most frequent element of each row, the smallest of several, and its last place, by counting in a table.

#include "core/block.cuh"
#include "sorting/element_keys.cuh"

#define THREADS 256

struct Candidate {
    int64 count;
    uint64 key;
    int64 place;
};

struct Frequent {
    __device__ static Candidate of(Candidate a, Candidate b)
    {
        if (a.count != b.count)
            return a.count > b.count ? a : b;
        if (a.key != b.key)
            return a.key < b.key ? a : b;
        return a.place < b.place ? a : b;
    }
};

// A slot of a table: an element, as its place + 1, and how many are equal to it.
struct Slot {
    uint64 owner, count;
};

// The multiplier is 2^64 over the golden ratio (D. E. Knuth, The Art of Computer Programming, vol. 3, 6.4).
__device__ inline uint64 home(Key key)
{
    return (uint64)key * 0x9e3779b97f4a7c15ull >> 20;
}

// A block takes one row after the other, with a table of `capacity` slots, a power of two.
extern "C" __global__ void __launch_bounds__(THREADS)
find_modes(const T *input, int64 rows, int64 n, void *tables, int64 capacity, T *values, int64 *places)
{
    Slot *table = (Slot *)tables + blockIdx.x * capacity;
    for (int64 number = blockIdx.x; number < rows; number += gridDim.x) {
        const T *row = input + number * n;
        for (int64 slot = threadIdx.x; slot < capacity; slot += THREADS)
            table[slot] = {0, 0};
        __syncthreads();
        Candidate best = {0, ~0ull, 0};
        for (int64 i = threadIdx.x; i < n; i += THREADS) {
            if (not_a_number(row[i])) { // equal to nothing
                best = Frequent::of(best, {1, ~0ull, i});
                continue;
            }
            Key key = key_of(row[i]);
            uint64 slot = home(key) & (capacity - 1);
            for (;; slot = (slot + 1) & (capacity - 1)) {
                uint64 owner = atomicCAS(&table[slot].owner, 0ull, (uint64)i + 1);
                if (owner == 0 || key_of(row[owner - 1]) == key)
                    break;
            }
            atomicAdd(&table[slot].count, 1ull);
        }
        __syncthreads();
        for (int64 slot = threadIdx.x; slot < capacity; slot += THREADS)
            if (Slot found = table[slot]; found.count)
                best = Frequent::of(best, {(int64)found.count, key_of(row[found.owner - 1]), (int64)found.owner - 1});
        best = combine_block<Frequent>(best, Candidate{0, ~0ull, 0});
        int64 last = best.place;
        if (!not_a_number(row[best.place]))
            for (int64 i = threadIdx.x; i < n; i += THREADS)
                if (i > last && key_of(row[i]) == Key(best.key))
                    last = i;
        last = combine_block<Greater>(last, int64(-1));
        if (threadIdx.x == 0) {
            values[number] = row[last];
            places[number] = last;
        }
    }
}
