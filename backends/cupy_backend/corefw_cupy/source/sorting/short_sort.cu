// Stable sort of rows that fit into shared memory, by Batcher's bitonic network.

#include "sorting/keys.cuh"
#include "core/block.cuh"

// A key and where its element was, ordered by both.
template <int size> struct Entry {
    uint64 value;
    Entry() = default;
    __device__ Entry(uint32 key, uint32 position) : value((uint64)key << 32 | position) {}
    __device__ bool operator<(const Entry &other) const { return value < other.value; }
    __device__ uint32 position() const { return value; }
};
template <> struct Entry<8> {
    uint64 key;
    uint32 place;
    Entry() = default;
    __device__ Entry(uint64 key, uint32 position) : key(key), place(position) {}
    __device__ bool operator<(const Entry &other) const
    {
        return key < other.key || (key == other.key && place < other.place);
    }
    __device__ uint32 position() const { return place; }
};

// A block sorts all of its rows at once, each in `width` entries (a power of two, not below `n`; at least 64 entries
// in all), and writes the first `k` of each.
extern "C" __global__ void sort_short(const T *input, T *values, int64 *indices, int64 rows, int64 n, int64 k,
                                      int64 inner, int64 width, int64 entries, bool descending)
{
    typedef Entry<sizeof(T)> E;
    DYNAMIC_SHARED(E, shared);
    int64 first = blockIdx.x * (entries / width);
    for (int slot = threadIdx.x; slot < entries; slot += blockDim.x) {
        int64 row = first + slot / width, i = slot % width;
        bool filled = row < rows && i < n;
        typename KeyOf<sizeof(T)>::type last = ~0ull;
        shared[slot] = E(filled ? sort_key(input[in_row(row, i, n, inner)], descending) : last, i);
    }
    __syncthreads();
    for (int size = 2; size <= width; size *= 2)
        for (int stride = size / 2; stride; stride /= 2) {
            for (int pair = threadIdx.x; pair < entries / 2; pair += blockDim.x) {
                int i = 2 * pair - (pair & (stride - 1));
                E low = shared[i], high = shared[i + stride];
                bool ascending = (i & (width - 1) & size) == 0;
                if (high < low == ascending) {
                    shared[i] = high;
                    shared[i + stride] = low;
                }
            }
            // the pairs of a warp lie in a window of its own while they are near each other
            int next = stride > 1 ? stride / 2 : size;
            if (stride > WARP || next > WARP)
                __syncthreads();
            else
                __syncwarp();
        }
    __syncthreads();
    for (int slot = threadIdx.x; slot < entries; slot += blockDim.x) {
        int64 row = first + slot / width, i = slot % width;
        if (row >= rows || i >= k)
            continue;
        int64 position = shared[slot].position(), to = in_row(row, i, k, inner);
        values[to] = input[in_row(row, position, n, inner)];
        indices[to] = position;
    }
}
