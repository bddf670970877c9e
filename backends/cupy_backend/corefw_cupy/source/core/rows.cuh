// How threads share rows of elements: `lanes` of them hold a row in registers, or walk over one.
//
// Where rows are packed, a thread reads and writes packs of 16 bytes; otherwise neighbours read neighbouring elements.
// A visitor is called with the number of elements that lie together (as Several<count>) and the first one's position.

#include "elementwise/elementwise.cuh"
#include "core/block.cuh"

#ifndef ITEMS // that a thread holds
#define ITEMS 1
#endif

#define MOST_THREADS 512 // of a block, so that each has 128 registers

const int WIDTH = Width<T>::value; // of a pack

// A thread's place: its row, and which of the row's lanes it is.
struct Lane {
    int64 row;
    int at, lanes;
};

__device__ inline Lane lane_of(int64 lanes)
{
    int count = lanes;
    return {(int64)blockIdx.x * (blockDim.x / count) + threadIdx.x / count, int(threadIdx.x % count), count};
}

// `value` of all lanes of a row combined: a power of two up to a warp's size, or a whole block.
template <class Combine, class Number> __device__ Number combine_lanes(Number value, Number neutral, int lanes)
{
    if (lanes > WARP)
        return combine_block<Combine>(value, neutral);
    for (int distance = lanes / 2; distance; distance /= 2)
        value = Combine::of(value, __shfl_xor_sync(EVERY_LANE, value, distance));
    return value;
}

// Whether rows of n elements can be read from these arrays (0 where one is missing) in packs.
template <class... Elements> __device__ bool packed_rows(int64 n, const Elements *...arrays)
{
    return n % WIDTH == 0 && (... && aligned<WIDTH>(arrays));
}

template <int count, class Element> __device__ void read(const Element *from, A *values)
{
    Pack<Element, count> pack = *(const Pack<Element, count> *)from;
#pragma unroll
    for (int k = 0; k < count; ++k)
        values[k] = pack.values[k];
}

// 16 bytes that this kernel never reads. Left to itself, the compiler splits stores of values that come from branches.
__device__ inline void write_16_bytes(void *to, const void *values)
{
    bits128 bytes;
    memcpy(&bytes, values, 16);
#ifdef EMULATED
    *(bits128 *)to = bytes;
#else
    asm volatile("st.v2.b64 [%0], {%1, %2};" ::"l"(to), "l"(bytes.low), "l"(bytes.high));
#endif
}

template <int count> __device__ void write(T *to, const A *values)
{
    Pack<T, count> pack;
#pragma unroll
    for (int k = 0; k < count; ++k)
        pack.values[k] = values[k];
    if constexpr (count == 1)
        *to = pack.values[0];
    else
        write_16_bytes(to, &pack);
}

// Visits the items that a thread holds of a row: (how many, the first one's index, its position in the row).
template <class Visit> __device__ void for_items(Lane lane, bool packed, Visit visit)
{
    if constexpr (ITEMS % WIDTH == 0)
        if (packed) {
#pragma unroll
            for (int item = 0; item < ITEMS; item += WIDTH)
                visit(Several<WIDTH>(), item, (int64)(item / WIDTH * lane.lanes + lane.at) * WIDTH);
            return;
        }
#pragma unroll
    for (int item = 0; item < ITEMS; ++item)
        visit(Several<1>(), item, (int64)item * lane.lanes + lane.at);
}

// The items of a row of n elements, `absent` beyond its end.
template <class Element>
__device__ void load(const Element *row, int64 n, Lane lane, bool packed, A absent, A (&values)[ITEMS])
{
    for_items(lane, packed, [&](auto several, int item, int64 at) {
        const int count = decltype(several)::count;
        if (at < n)
            read<count>(row + at, values + item);
        else
            for (int k = 0; k < count; ++k)
                values[item + k] = absent;
    });
}

__device__ inline void store(T *row, int64 n, Lane lane, bool packed, const A (&values)[ITEMS])
{
    for_items(lane, packed, [&](auto several, int item, int64 at) {
        if (at < n)
            write<decltype(several)::count>(row + at, values + item);
    });
}

// Visits the elements from `begin` to `end` that fall to one of several lanes.
template <class Visit> __device__ void walk(int64 begin, int64 end, int64 lane, int64 lanes, bool packed, Visit visit)
{
    if (packed)
        for (int64 at = begin + lane * WIDTH; at < end; at += lanes * WIDTH)
            visit(Several<WIDTH>(), at);
    else
        for (int64 at = begin + lane; at < end; at += lanes)
            visit(Several<1>(), at);
}

// Threads of a block that are `width` columns wide: `value` of all threads of a column combined.
template <class Combine, class Number> __device__ Number combine_column(Number value, int width)
{
    __shared__ Number of_threads[MOST_THREADS];
    of_threads[threadIdx.x] = value;
    __syncthreads();
    int column = threadIdx.x % width;
    Number combined = of_threads[column];
    for (int other = column + width; other < blockDim.x; other += width)
        combined = Combine::of(combined, of_threads[other]);
    __syncthreads(); // of_threads may be written again
    return combined;
}
