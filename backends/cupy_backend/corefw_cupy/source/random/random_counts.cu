// Random numbers whose values are whole: integers in a range, numbers of trials, and ones with a probability.

#include "random/philox.cuh"
#include "random/randomness.cuh"

#ifndef P // the type of probabilities
#define P double
#endif

struct Integers {
    static const int per_block = 2;
    uint64 low, span; // a span of 0 stands for 2^64
    bool is_signed;

    __device__ void draw(const Block &block, int64, T *values) const
    {
        for (int i = 0; i < per_block; ++i) {
            uint64 word = block.long_word(i), value = low + (span ? __umul64hi(word, span) : word);
            values[i] = is_signed ? (A)(int64)value : (A)value;
        }
    }
};

struct Geometric {
    static const int per_block = 2;
    double log_failure, most;

    __device__ void draw(const Block &block, int64, T *values) const
    {
        for (int i = 0; i < per_block; ++i) {
            double trials = ceil(log_of_fraction(Grid<double>::open(block, i)) / log_failure);
            values[i] = (A)(trials < 1 ? 1 : trials > most ? most : trials);
        }
    }
};

struct Bernoulli {
    static const int per_block = Grid<D>::per_block;
    const P *probabilities;
    int64 n;
    bool single; // whether there is one for all

    __device__ void draw(const Block &block, int64 first, T *values) const
    {
        for (int i = 0; i < per_block; ++i)
            if (first + i < n)
                values[i] = (A)(Grid<D>::closed(block, i) < (D)probabilities[single ? 0 : first + i]);
    }
};

extern "C" __global__ void integers(T *out, int64 n, uint64 seed, uint64 offset, const uint64 *state, uint64 low, uint64 span,
                                    bool is_signed)
{
    fill(out, n, {seed, offset, state}, Integers{low, span, is_signed});
}

extern "C" __global__ void geometric(T *out, int64 n, uint64 seed, uint64 offset, const uint64 *state, double log_failure, double most)
{
    fill(out, n, {seed, offset, state}, Geometric{log_failure, most});
}

extern "C" __global__ void bernoulli(T *out, int64 n, uint64 seed, uint64 offset, const uint64 *state, const P *probabilities, bool single)
{
    fill(out, n, {seed, offset, state}, Bernoulli{probabilities, n, single});
}
