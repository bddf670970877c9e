// CUDA's model of execution on one thread of a CPU, so that CUDA sources compile as C++ and run where there is no GPU.
//
// Blocks run one after another. The threads of a block are fibers: each runs until it waits at a barrier, then the next
// one runs. Threads of odd blocks run in reverse order, so that what relies on an order without a barrier shows.

#pragma once
#define EMULATED
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__ static
#define __constant__ static const
#define __launch_bounds__(...)
#define __syncwarp(...) emulator::wait_warp(0xffffffffu)

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <ucontext.h>
#include <utility>
#include <vector>

using std::max;
using std::min;
using namespace std; // the overloads of <cmath>, as CUDA has them in the global namespace

struct dim3 {
    unsigned x, y, z;
};

// One block runs at a time, whichever library its kernel is in: the variables of all are those of emulator.cpp.
extern dim3 threadIdx, blockIdx, blockDim, gridDim;
extern "C" bool emulated_backwards; // whether blocks run from the last to the first, and threads in the opposite order

namespace emulator {

constexpr int STACK = 1 << 18, MOST_THREADS = 1024;

enum Waiting { NOWHERE, AT_BLOCK, AT_WARP };

struct Fiber {
    ucontext_t first;
    jmp_buf state;
    bool begun = false, busy = false, done = false;
    Waiting waiting = NOWHERE;
    unsigned lane_mask;
    int thread; // of the block
};

extern Fiber fibers[MOST_THREADS];
extern char *stacks[MOST_THREADS];
extern jmp_buf scheduler;
extern Fiber *current;
extern void (*body)(void *);
extern void *argument;
alignas(16) extern char dynamic[232448]; // dynamic shared memory, at most what a block can have on sm_90
alignas(16) extern char exchanged[MOST_THREADS][32]; // what lanes give each other
extern Fiber *of_thread[MOST_THREADS]; // null of those that are done

inline void pause()
{
    if (!_setjmp(current->state))
        _longjmp(scheduler, 1);
}

inline void run_fiber()
{
    for (;;) {
        body(argument);
        current->done = true;
        pause();
    }
}

inline void resume(Fiber &fiber)
{
    current = &fiber;
    unsigned t = fiber.thread;
    threadIdx = {t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y};
    if (_setjmp(scheduler))
        return;
    if (fiber.begun)
        _longjmp(fiber.state, 1);
    int index = &fiber - fibers;
    if (!stacks[index])
        stacks[index] = (char *)malloc(STACK);
    getcontext(&fiber.first);
    fiber.first.uc_stack.ss_sp = stacks[index];
    fiber.first.uc_stack.ss_size = STACK;
    fiber.begun = true;
    makecontext(&fiber.first, run_fiber, 0);
    setcontext(&fiber.first);
}

__attribute__((noinline)) inline void wait_block()
{
    current->waiting = AT_BLOCK;
    pause();
}

__attribute__((noinline)) inline void wait_warp(unsigned mask)
{
    current->waiting = AT_WARP;
    current->lane_mask = mask;
    pause();
}

// Runs the threads of a warp until each waits for the block or is done; whether any of them ran.
inline bool run_warp(int warp, int threads, bool reversed, int &left)
{
    bool moved = false, ran = true;
    int end = min(warp + 32, threads);
    while (ran) {
        for (int t = warp; t < end; ++t) { // lanes of a mask that all wait at the warp's barrier go on
            if (!of_thread[t] || of_thread[t]->waiting != AT_WARP)
                continue;
            unsigned mask = of_thread[t]->lane_mask;
            bool all = true;
            for (int u = warp; u < end; ++u)
                if (mask >> (u - warp) & 1 && of_thread[u])
                    all &= of_thread[u]->waiting == AT_WARP && of_thread[u]->lane_mask == mask;
            for (int u = warp; u < end && all; ++u)
                if (mask >> (u - warp) & 1 && of_thread[u])
                    of_thread[u]->waiting = NOWHERE;
        }
        ran = false;
        for (int i = warp; i < end; ++i) {
            int t = reversed ? warp + end - 1 - i : i;
            Fiber *fiber = of_thread[t];
            if (!fiber || fiber->waiting != NOWHERE)
                continue;
            moved = ran = true;
            resume(*fiber);
            if (fiber->done) {
                of_thread[t] = nullptr;
                --left;
            }
        }
    }
    return moved;
}

// The threads of one block, warp by warp, so that what warps do to each other without a barrier shows; false if some
// wait for others that never come.
inline bool run_block(int threads, bool reversed)
{
    int fibers_used = 0, left = threads;
    for (int i = 0; i < threads; ++i) { // until the first barrier; a fiber that ends at once serves the next thread
        Fiber *fiber = &fibers[fibers_used];
        fiber->thread = reversed ? threads - 1 - i : i;
        fiber->done = false;
        fiber->waiting = NOWHERE;
        resume(*fiber);
        of_thread[fiber->thread] = fiber->done ? nullptr : fiber;
        if (fiber->done)
            --left;
        else
            ++fibers_used;
    }
    while (left) {
        bool moved = false;
        bool whole_block = true;
        for (int t = 0; t < threads; ++t)
            whole_block &= !of_thread[t] || of_thread[t]->waiting == AT_BLOCK;
        if (whole_block)
            for (int t = 0; t < threads; ++t)
                if (of_thread[t])
                    of_thread[t]->waiting = NOWHERE;
        for (int i = 0, warps = (threads + 31) / 32; i < warps; ++i)
            moved |= run_warp((reversed ? warps - 1 - i : i) * 32, threads, reversed, left);
        if (!moved) {
            for (int i = 0; i < fibers_used; ++i)
                fibers[i].begun = false; // what they hold is given up
            return false;
        }
    }
    return true;
}

inline bool launch(dim3 grid, dim3 block, void (*function)(void *), void *arguments)
{
    body = function;
    argument = arguments;
    gridDim = grid;
    blockDim = block;
    size_t blocks = size_t(grid.x) * grid.y * grid.z;
    for (size_t i = 0; i < blocks; ++i) {
        size_t index = emulated_backwards ? blocks - 1 - i : i;
        blockIdx = {unsigned(index % grid.x), unsigned(index / grid.x % grid.y), unsigned(index / grid.x / grid.y)};
        if (!run_block(block.x * block.y * block.z, index % 2 != emulated_backwards))
            return false;
    }
    return true;
}

// A kernel as a function of an array of pointers to its arguments.
template <class... Arguments> struct Unpacked {
    template <void (*kernel)(Arguments...), size_t... i> static void call(void **arguments, std::index_sequence<i...>)
    {
        kernel(*(std::remove_reference_t<std::remove_cv_t<Arguments>> *)arguments[i]...);
    }
};

// The kind of a parameter: pointer, integer of 64 bits, double, bool, or another one passed by value.
template <class Parameter> constexpr char code()
{
    if (std::is_pointer_v<Parameter>)
        return 'p';
    if (std::is_same_v<Parameter, bool>)
        return 'b';
    if (std::is_same_v<Parameter, double>)
        return 'd';
    return std::is_integral_v<Parameter> && sizeof(Parameter) == 8 ? 'i' : std::is_arithmetic_v<Parameter> ? '?' : 's';
}

namespace { // each library has its own: kernels of one name may differ in their parameters
template <auto kernel> struct Kernel;
template <class... Arguments, void (*kernel)(Arguments...)> struct Kernel<kernel> {
    static void run(void *arguments)
    {
        Unpacked<Arguments...>::template call<kernel>((void **)arguments, std::index_sequence_for<Arguments...>());
    }
    static constexpr char signature[] = {code<Arguments>()..., 0};
};
} // namespace

// What lane `source` of the thread's warp gave; the own value for lanes that are not there.
template <class Value> Value exchange(unsigned mask, Value value, int source)
{
    static_assert(sizeof(Value) <= 32);
    int thread = current->thread, warp = thread / 32 * 32;
    memcpy(exchanged[thread], &value, sizeof value);
    wait_warp(mask);
    if (source >= 0 && warp + source < int(blockDim.x * blockDim.y * blockDim.z))
        memcpy(&value, exchanged[warp + source], sizeof value);
    wait_warp(mask);
    return value;
}

inline int lane()
{
    return current->thread % 32;
}

} // namespace emulator

// The function that Python calls.
#define EMULATED_KERNEL(name)                                                                                          \
    extern "C" const char *signature_##name() { return emulator::Kernel<&name>::signature; }                           \
    extern "C" int emulated_##name(const unsigned *grid, const unsigned *block, void **arguments)                     \
    {                                                                                                                  \
        return emulator::launch({grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]},                           \
                                emulator::Kernel<&name>::run, arguments);                                              \
    }

#define __syncthreads() emulator::wait_block()
inline int __syncthreads_or(int predicate)
{
    static int any;
    emulator::wait_block();
    any = 0;
    emulator::wait_block();
    any |= predicate != 0;
    emulator::wait_block();
    return any;
}
inline void __threadfence() {}
inline void __threadfence_block() {}

template <class Value> Value __shfl_sync(unsigned mask, Value value, int source, int width = 32)
{
    int lane = emulator::lane();
    return emulator::exchange(mask, value, lane / width * width + (source % width + width) % width);
}
template <class Value> Value __shfl_xor_sync(unsigned mask, Value value, int flipped, int width = 32)
{
    int lane = emulator::lane(), source = lane ^ flipped;
    return emulator::exchange(mask, value, source / width <= lane / width ? source : lane);
}
template <class Value> Value __shfl_down_sync(unsigned mask, Value value, int distance, int width = 32)
{
    int lane = emulator::lane(), source = lane + distance;
    return emulator::exchange(mask, value, source / width == lane / width ? source : lane);
}
template <class Value> Value __shfl_up_sync(unsigned mask, Value value, int distance, int width = 32)
{
    int lane = emulator::lane(), source = lane - distance;
    return emulator::exchange(mask, value, source >= lane / width * width ? source : lane);
}
inline unsigned __ballot_sync(unsigned mask, int predicate)
{
    int thread = emulator::current->thread, warp = thread / 32 * 32;
    emulator::exchanged[thread][0] = predicate != 0;
    emulator::wait_warp(mask);
    unsigned votes = 0;
    for (int lane = 0; lane < 32; ++lane)
        if (warp + lane < int(blockDim.x * blockDim.y * blockDim.z) && mask >> lane & 1)
            votes |= unsigned(emulator::exchanged[warp + lane][0]) << lane;
    emulator::wait_warp(mask);
    return votes;
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return !__ballot_sync(mask, !predicate); }

// One thread runs at a time, so an ordinary update is atomic.
template <class Number> Number atomicAdd(Number *at, std::type_identity_t<Number> value)
{
    return std::exchange(*at, *at + value);
}
template <class Number> Number atomicMax(Number *at, std::type_identity_t<Number> value)
{
    return std::exchange(*at, max(*at, value));
}
template <class Number> Number atomicMin(Number *at, std::type_identity_t<Number> value)
{
    return std::exchange(*at, min(*at, value));
}
template <class Number> Number atomicOr(Number *at, std::type_identity_t<Number> value)
{
    return std::exchange(*at, *at | value);
}
template <class Number> Number atomicExch(Number *at, std::type_identity_t<Number> value)
{
    return std::exchange(*at, value);
}
template <class Number>
Number atomicCAS(Number *at, std::type_identity_t<Number> expected, std::type_identity_t<Number> value)
{
    return *at == expected ? std::exchange(*at, value) : *at;
}

template <class To, class From> To reinterpreted(From from)
{
    static_assert(sizeof(To) == sizeof(From));
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}
inline unsigned __float_as_uint(float x) { return reinterpreted<unsigned>(x); }
inline int __float_as_int(float x) { return reinterpreted<int>(x); }
inline float __uint_as_float(unsigned x) { return reinterpreted<float>(x); }
inline float __int_as_float(int x) { return reinterpreted<float>(x); }
inline long long __double_as_longlong(double x) { return reinterpreted<long long>(x); }
inline double __longlong_as_double(long long x) { return reinterpreted<double>(x); }
inline unsigned __umulhi(unsigned x, unsigned y) { return (unsigned long long)x * y >> 32; }
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y)
{
    return (unsigned __int128)x * y >> 64;
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
template <class Value> Value __ldg(const Value *at) { return *at; }

inline float rsqrt(float x) { return 1 / std::sqrt(x); }
inline double rsqrt(double x) { return 1 / std::sqrt(x); }
inline float normcdf(float x) { return float(0.5 * std::erfc(-double(x) * M_SQRT1_2)); }
inline double normcdf(double x) { return 0.5 * std::erfc(-x * M_SQRT1_2); }

// exp(x²) erfc(x), for great x by its continued fraction.
inline double erfcx(double x)
{
    if (x < 10)
        return std::exp(x * x) * std::erfc(x);
    double fraction = x;
    for (int k = 40; k; --k)
        fraction = x + k / 2.0 / fraction;
    return 1 / (std::sqrt(M_PI) * fraction);
}
inline float erfcx(float x) { return float(erfcx(double(x))); }

// The inverse of erf, by Newton's method on a first approximation from the logarithm.
inline double erfinv(double y)
{
    if (!(std::fabs(y) < 1))
        return std::fabs(y) == 1 ? y * INFINITY : NAN;
    double l = std::log1p(-y * y), a = 2 / (M_PI * 0.147) + l / 2;
    double x = std::copysign(std::sqrt(std::sqrt(a * a - l / 0.147) - a), y);
    for (int i = 0; i < 4; ++i) {
        double error = y > 0.5 ? std::erfc(x) - (1 - y) : y < -0.5 ? 1 + y - std::erfc(-x) : y - std::erf(x);
        x += error / (M_2_SQRTPI * std::exp(-x * x));
    }
    return x;
}
inline float erfinv(float y) { return float(erfinv(double(y))); }
