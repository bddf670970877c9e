// The random streams of docs/random.md: their blocks, the numbers that are made of words, and how arrays are filled.

#include "elementwise/elementwise.cuh"

struct Block {
    uint32 words[4];

    __device__ uint64 long_word(int i) const { return words[2 * i] | (uint64)words[2 * i + 1] << 32; }
};

// Philox 4x32 with 10 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
__device__ inline Block philox(uint64 seed, uint64 counter)
{
    uint32 c0 = counter, c1 = counter >> 32, c2 = 0, c3 = 0, k0 = seed, k1 = seed >> 32;
    const uint32 m0 = 0xD2511F53u, m1 = 0xCD9E8D57u;
    for (int round = 0; round < 10; ++round) { // high and low halves by themselves: compilers would compute in 64 bits
        uint32 high0 = __umulhi(m0, c0), high1 = __umulhi(m1, c2), low0 = m0 * c0;
        c0 = high1 ^ c1 ^ k0;
        c1 = m1 * c2;
        c2 = high0 ^ c3 ^ k1;
        c3 = low0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return {{c0, c1, c2, c3}};
}

// The part of a stream that a call uses. Seed and first block are given or, in a graph, which is replayed, `state` has
// those of the generator at the graph's start; `offset` counts from there.
struct Part {
    uint64 seed, offset;

    __device__ Part(uint64 seed, uint64 offset, const uint64 *state)
        : seed(state ? state[0] : seed), offset(state ? state[1] + offset : offset)
    {
    }
    __device__ Block block(int64 i) const { return philox(seed, offset + i); }
    __device__ uint64 long_word(int64 i) const { return block(i / 2).long_word(i % 2); }
};

// The type that random numbers of a type are computed in.
template <class Element> struct Drawn {
    typedef float type;
};
template <> struct Drawn<double> {
    typedef double type;
};
typedef Drawn<T>::type D;

// The grids U, in [0, 1), and V, in (0, 1), of the numbers that a block holds.
template <class Real> struct Grid;
template <> struct Grid<float> {
    static const int per_block = 4;
    __device__ static float closed(const Block &block, int i) { return (int)(block.words[i] >> 8) * 0x1p-24f; }
    __device__ static double open(const Block &block, int i) { return (int)(block.words[i] >> 8 | 1) * 0x1p-24; }
};
template <> struct Grid<double> {
    static const int per_block = 2;
    __device__ static double closed(uint64 word) { return (int64)(word >> 11) * 0x1p-53; }
    __device__ static double open(uint64 word) { return (int64)(word >> 11 | 1) * 0x1p-53; }
    __device__ static double closed(const Block &block, int i) { return closed(block.long_word(i)); }
    __device__ static double open(const Block &block, int i) { return open(block.long_word(i)); }
};

// a * b + c in two roundings, as the specification says: compilers would do it in one.
#ifdef EMULATED
inline float scaled(float a, float b, float c) { return a * b + c; }
inline double scaled(double a, double b, double c) { return a * b + c; }
#else
__device__ inline float scaled(float a, float b, float c) { return __fadd_rn(__fmul_rn(a, b), c); }
__device__ inline double scaled(double a, double b, double c) { return __dadd_rn(__dmul_rn(a, b), c); }
#endif

// Fill n elements of a new array: kind.draw(block, i, values) makes the elements from the i-th on that a block gives.
// A thread writes 16 bytes, or what one block gives if that is more.
template <class Kind> __device__ void fill(T *out, int64 n, const Part &part, const Kind &kind)
{
    const int per_block = Kind::per_block, packed = 16 / sizeof(T), width = packed > per_block ? packed : per_block;
    int64 first = ((int64)blockIdx.x * blockDim.x + threadIdx.x) * width;
    if (first >= n)
        return;
    T values[width];
    for (int k = 0; k < width; k += per_block)
        if (first + k < n)
            kind.draw(part.block((first + k) / per_block), first + k, values + k);
    for (int k = 0; k < width; k += packed) {
        T(&pack)[packed] = *(T(*)[packed])(values + k);
        deposit(out, first + k, n, first + k + packed <= n, pack);
    }
}
