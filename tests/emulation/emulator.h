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

constexpr int MOST_THREADS = 1024;

enum Waiting { NOWHERE, AT_BLOCK, AT_WARP };

struct Fiber {
    ucontext_t first;
    jmp_buf state;
    bool begun = false, done = false;
    Waiting waiting = NOWHERE;
    unsigned lane_mask;
    int thread; // of the block
};

extern Fiber *current;
alignas(16) extern char dynamic[232448]; // dynamic shared memory, at most what a block can have on sm_90
alignas(16) extern char exchanged[MOST_THREADS][32]; // what lanes give each other

void wait_block();
void wait_warp(unsigned mask);

// Runs a kernel's blocks; false if some threads wait for others that never come.
bool launch(dim3 grid, dim3 block, void (*function)(void *), void *arguments);

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
