// Reductions of arrays over some of their dimensions, by an operation OPERATION of elements of type T.
//
// Kept dimensions are joined to two, `outer` and `inner`, and reduced ones to two, `slow`
// and `fast` (reducing.py).

#include "core/operation.cuh"
#include "core/block.cuh"
#include "core/packs.cuh"

#define THREADS 256
#define BLOCKS_PER_PROCESSOR 4 // of which reducing.py counts on
#define BATCH 4   // loads of a thread that are under way at once
#define STATES 32 // bytes of states that a thread adds to in turn, so that additions do not wait for each other

struct Walk {
    int64 outer, inner, slow, fast; // sizes
    int64 outer_stride, inner_stride, slow_stride, fast_stride; // in elements of the input
    int64 outer_place, inner_place; // strides of the result
    int64 packed; // whether elements can be read in packs: along `inner` by reduce_columns, else along `fast`
};

// A position in two dimensions joined to one, as positions in both.
struct Pair {
    int64 outer, inner;

    __device__ Pair(int64 i, int64 outer_size, int64 inner_size)
    {
        if (outer_size == 1)
            outer = 0;
        else if ((i | inner_size) >> 31 == 0) // a division of 32 bits is much faster
            outer = (uint32)i / (uint32)inner_size;
        else
            outer = i / inner_size;
        inner = i - outer * inner_size;
    }
};

// Where the reduced element `i` lies.
__device__ inline int64 along(const Walk &walk, int64 i)
{
    Pair at(i, walk.slow, walk.fast);
    return at.outer * walk.slow_stride + at.inner * walk.fast_stride;
}

// Reduce units of `width` elements, the first, the `step`-th after it and so on up to `end`, to several states. The
// elements of a unit are `apart` places from each other: 1 along a row, 0 if they belong to columns.
template <class Operation, int width, int apart, int several, class Element>
__device__ void gather(typename Operation::State (&states)[several], const Element *from, const Walk &walk,
                       double number, int64 first, int64 step, int64 end)
{
    int64 i = first;
    for (; i + (BATCH - 1) * step < end; i += BATCH * step) {
        Packed<Element, width> packs[BATCH];
#pragma unroll
        for (int b = 0; b < BATCH; ++b)
            packs[b] = load<width>(from + along(walk, i + b * step));
#pragma unroll
        for (int b = 0; b < BATCH; ++b)
#pragma unroll
            for (int k = 0; k < width; ++k)
                Operation::add(states[k % several], packs[b].values[k], i + b * step + k * apart, number);
    }
    for (; i < end; i += step) {
        Packed<Element, width> pack = load<width>(from + along(walk, i));
#pragma unroll
        for (int k = 0; k < width; ++k)
            Operation::add(states[k % several], pack.values[k], i + k * apart, number);
    }
}

// What `threads` neighbours reduce a row to, of which this one is number `thread`.
template <class Operation, class Element>
__device__ typename Operation::State reduced_row(const Element *row, const Walk &walk, double number, int thread,
                                                 int threads)
{
    typedef typename Operation::State State;
    const int width = Together<Element, 8>::value, fitting = STATES / sizeof(State);
    const int several = fitting < 1 ? 1 : fitting < width ? fitting : width;
    State states[several];
#pragma unroll
    for (int k = 0; k < several; ++k)
        states[k] = Operation::neutral();
    int64 n = walk.slow * walk.fast;
    Part part(n, width);
    if (walk.fast_stride == 1 && walk.slow == 1) {
        int64 misplaced = (uint64)(row + part.begin) % sizeof(Packed<Element, width>) / sizeof(Element);
        int64 begin = misplaced ? part.begin + width - misplaced : part.begin;
        begin = begin < part.end ? begin : part.end;
        int64 end = begin + (part.end - begin) / width * width;
        gather<Operation, width, 1>(states, row, walk, number, begin + thread * width, threads * width, end);
        gather<Operation, 1, 1>(states, row, walk, number, part.begin + thread, threads, begin);
        gather<Operation, 1, 1>(states, row, walk, number, end + thread, threads, part.end);
    } else if (walk.packed) {
        gather<Operation, width, 1>(states, row, walk, number, part.begin + thread * width, threads * width, part.end);
    } else {
        gather<Operation, 1, 1>(states, row, walk, number, part.begin + thread, threads, part.end);
    }
#pragma unroll
    for (int k = 1; k < several; ++k)
        states[0] = Operation::of(states[0], states[k]);
    return states[0];
}

// Where the result of a block, or its part of the result, goes.
template <class Operation> struct Target {
    typename Operation::Result *results; // 0 if they are not wanted
    int64 *places; // of the elements found; 0 if they are not wanted
    typename Operation::State *parts; // 0 unless several blocks share the work
    int64 count;
    double number;

    __device__ void put(int64 i, typename Operation::State state) const
    {
        if (parts)
            parts[i * gridDim.y + blockIdx.y] = state;
        else
            finish(i, state);
    }

    __device__ void finish(int64 i, typename Operation::State state) const
    {
        if (results)
            results[i] = Operation::result(state, count, number);
        if (places)
            places[i] = Operation::place(state);
    }
};

// Columns, `width` neighbours for a thread: the threads with the same threadIdx.x share their elements.
template <class Operation, int width, class Element>
__device__ void reduce_tile(const Element *from, const Walk &walk, const Target<Operation> &target)
{
    typedef typename Operation::State State;
    __shared__ State shared[width][THREADS];
    int64 tile = (int64)blockDim.x * width, tiles = (walk.inner + tile - 1) / tile;
    int64 outer = blockIdx.x / tiles, inner = blockIdx.x % tiles * tile + threadIdx.x * width;
    bool inside = inner < walk.inner;
    State states[width];
#pragma unroll
    for (int k = 0; k < width; ++k)
        states[k] = Operation::neutral();
    if (inside) {
        const Element *column = from + outer * walk.outer_stride + inner * walk.inner_stride;
        Part part(walk.slow * walk.fast, 1);
        gather<Operation, width, 0>(states, column, walk, target.number, part.begin + threadIdx.y, blockDim.y,
                                    part.end);
    }
    int thread = threadIdx.y * blockDim.x + threadIdx.x;
#pragma unroll
    for (int k = 0; k < width; ++k)
        shared[k][thread] = states[k];
    for (int half = blockDim.y / 2; half; half /= 2) {
        __syncthreads();
        if (threadIdx.y < half)
#pragma unroll
            for (int k = 0; k < width; ++k)
                shared[k][thread] = Operation::of(shared[k][thread], shared[k][thread + half * blockDim.x]);
    }
    if (inside && threadIdx.y == 0)
#pragma unroll
        for (int k = 0; k < width; ++k)
            target.put(outer * walk.outer_place + (inner + k) * walk.inner_place, shared[k][thread]);
}

typedef OPERATION::State State;
typedef OPERATION::Result Result;

static_assert(sizeof(State) <= 32, "reducing.py and scan.py give parts no more room");

// Rows whose elements lie close together: threadIdx.x runs along a row, threadIdx.y over rows of a block.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_PROCESSOR)
reduce_rows(const T *input, Walk walk, void *parts, Result *results, int64 *places, int64 count, double number)
{
    int64 row = (int64)blockIdx.x * blockDim.y + threadIdx.y;
    bool inside = row < walk.outer * walk.inner;
    Pair at(row, walk.outer, walk.inner);
    State state = OPERATION::neutral();
    if (inside)
        state = reduced_row<OPERATION>(input + at.outer * walk.outer_stride + at.inner * walk.inner_stride, walk,
                                       number, threadIdx.x, blockDim.x);
    state = blockDim.x > WARP ? combine_block<OPERATION>(state, OPERATION::neutral())
                              : combine_warp<OPERATION>(state, blockDim.x);
    Target<OPERATION> target{results, places, (State *)parts, count, number};
    if (inside && threadIdx.x == 0)
        target.put(at.outer * walk.outer_place + at.inner * walk.inner_place, state);
}

// Columns that lie close together: threadIdx.x runs over columns, threadIdx.y along them.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_PROCESSOR)
reduce_columns(const T *input, Walk walk, void *parts, Result *results, int64 *places, int64 count, double number)
{
    Target<OPERATION> target{results, places, (State *)parts, count, number};
    if (walk.packed)
        reduce_tile<OPERATION, Together<T, 4>::value>(input, walk, target);
    else
        reduce_tile<OPERATION, 1>(input, walk, target);
}

// What several blocks made for each result combined, by a block for each.
extern "C" __global__ void reduce_parts(const void *parts, int64 n, Result *results, int64 *places, int64 count,
                                        double number)
{
    State state = OPERATION::neutral();
    for (int64 i = threadIdx.x; i < n; i += blockDim.x)
        state = OPERATION::of(state, ((const State *)parts)[blockIdx.x * n + i]);
    state = combine_block<OPERATION>(state, OPERATION::neutral());
    Target<OPERATION> target{results, places, 0, count, number};
    if (threadIdx.x == 0)
        target.finish(blockIdx.x, state);
}
