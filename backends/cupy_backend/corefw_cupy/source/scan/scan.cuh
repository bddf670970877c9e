// Running results of an operation OPERATION along one dimension of arrays in row-major order, of elements of type T.
//
// A line may be shared by the blocks of a column of the grid: a first launch, for `totals`, writes only what each of
// the parts of a line combines to, and a second one begins each part where those before it end.

#include "core/operation.cuh"
#include "core/block.cuh"
#include "core/packs.cuh"

#define THREADS 256
#define WIDTH Together<T, 8>::value
#define BATCH 8 // loads of a thread that are under way at once

typedef OPERATION::State State;
typedef OPERATION::Result Result;

static_assert(sizeof(State) <= 32, "reducing.py and scan.py give parts no more room");

// The running results of a thread's neighbouring elements, after those `before`.
__device__ void put(Result *results, int64 *places, State before, const State (&states)[WIDTH], int count)
{
    Packed<Result, WIDTH> pack;
#pragma unroll
    for (int k = 0; k < WIDTH; ++k) {
        State state = OPERATION::of(before, states[k]);
        pack.values[k] = OPERATION::result(state, 0, 0);
        if (places && k < count)
            places[k] = OPERATION::place(state);
    }
    if (count == WIDTH) {
        write(results, pack);
        return;
    }
#pragma unroll
    for (int k = 0; k < WIDTH; ++k)
        if (k < count)
            results[k] = pack.values[k];
}

// Lines whose elements are neighbours: threadIdx.x runs along a line, threadIdx.y over lines of a block.
extern "C" __global__ void __launch_bounds__(THREADS)
scan_rows(const T *input, int64 lines, int64 n, void *parts, bool totals, Result *results, int64 *places)
{
    int64 line = (int64)blockIdx.x * blockDim.y + threadIdx.y, start = line * n;
    Part part(n, WIDTH * THREADS);
    State carry = OPERATION::neutral(), *own_parts = (State *)parts + line * gridDim.y;
    if (parts && !totals) { // a block has one line
        for (int64 y = threadIdx.x; y < blockIdx.y; y += blockDim.x)
            carry = OPERATION::of(carry, own_parts[y]);
        carry = combine_block<OPERATION>(carry, OPERATION::neutral());
    }
    for (int64 chunk = part.begin; chunk < part.end; chunk += blockDim.x * WIDTH) {
        int64 first = chunk + threadIdx.x * WIDTH, left = line < lines ? part.end - first : 0;
        int count = left < 0 ? 0 : left < WIDTH ? left : WIDTH;
        Packed<T, WIDTH> pack;
        if (count == WIDTH)
            pack = read<WIDTH>(input + start + first);
        State states[WIDTH], running = OPERATION::neutral(), total;
#pragma unroll
        for (int k = 0; k < WIDTH; ++k) {
            if (k < count)
                OPERATION::add(running, count == WIDTH ? pack.values[k] : input[start + first + k], first + k, 0);
            states[k] = running;
        }
        State before = OPERATION::of(carry, preceding<OPERATION>(running, OPERATION::neutral(), blockDim.x, total));
        carry = OPERATION::of(carry, total);
        if (!totals)
            put(results + start + first, places ? places + start + first : 0, before, states, count);
    }
    if (totals && threadIdx.x == 0)
        own_parts[blockIdx.y] = carry;
}

// Lines that are neighbours, a thread for each: `n` elements of a line are `inner` apart.
extern "C" __global__ void __launch_bounds__(THREADS)
scan_columns(const T *input, int64 lines, int64 n, int64 inner, void *parts, bool totals, Result *results,
             int64 *places)
{
    int64 line = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (line >= lines)
        return;
    int64 start = line / inner * inner * n + line % inner;
    Part part(n, 1);
    State state = OPERATION::neutral();
    if (parts && !totals)
        for (int64 y = 0; y < blockIdx.y; ++y)
            state = OPERATION::of(state, ((State *)parts)[y * lines + line]);
    for (int64 i = part.begin; i < part.end; i += BATCH) {
        T values[BATCH];
#pragma unroll
        for (int b = 0; b < BATCH; ++b)
            if (i + b < part.end)
                values[b] = input[start + (i + b) * inner];
#pragma unroll
        for (int b = 0; b < BATCH; ++b)
            if (i + b < part.end) {
                OPERATION::add(state, values[b], i + b, 0);
                if (totals)
                    continue;
                int64 at = start + (i + b) * inner;
                results[at] = OPERATION::result(state, 0, 0);
                if (places)
                    places[at] = OPERATION::place(state);
            }
    }
    if (totals)
        ((State *)parts)[blockIdx.y * lines + line] = state;
}
