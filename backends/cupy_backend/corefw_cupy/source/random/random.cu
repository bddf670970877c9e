// Random numbers: the kinds of docs/random.md that take one or two words for each element.

#include "random/philox.cuh"
#include "random/randomness.cuh"
#include "random/randomness_float32.cuh"

// What the upper bits of a word are divided by to give U: a half type has the first bits of the float32 value.
template <class Element> struct Closed {
    __device__ static D of(const Block &block, int i) { return Grid<D>::closed(block, i); }
};
template <> struct Closed<float16> {
    __device__ static float of(const Block &block, int i) { return (int)(block.words[i] >> 21) * 0x1p-11f; }
};
template <> struct Closed<bfloat16> {
    __device__ static float of(const Block &block, int i) { return (int)(block.words[i] >> 24) * 0x1p-8f; }
};

struct Uniform {
    static const int per_block = Grid<D>::per_block;
    D bottom, span, largest;

    __device__ void draw(const Block &block, int64, T *values) const
    {
        for (int i = 0; i < per_block; ++i) {
            D value = scaled(Closed<T>::of(block, i), span, bottom);
            values[i] = value > largest ? largest : value;
        }
    }
};

// Normal deviates of a variance in pairs, by the method of Box and Muller, and exponential ones.
template <class Real> struct Deviates;
template <> struct Deviates<float> {
    __device__ static int odd(const Block &block, int i) { return block.words[i] >> 8 | 1; }
    __device__ static void normal(const Block &block, int i, float minus_twice_variance, float *values)
    {
        Split log = log_of_fraction(odd(block, i));
        Split radius = root({minus_twice_variance * log.high, minus_twice_variance * log.low});
        SplitDirection direction = direction_of(odd(block, i + 1));
        values[0] = product(radius, direction.cosine);
        values[1] = product(radius, direction.sine);
    }
    __device__ static float exponential(const Block &block, int i) { return -log_of_fraction(odd(block, i)).high; }
};
template <> struct Deviates<double> {
    __device__ static void normal(const Block &block, int i, double minus_twice_variance, double *values)
    {
        double radius = sqrt(minus_twice_variance * log_of_fraction(Grid<double>::open(block, i)));
        Direction direction = direction_of(Grid<double>::open(block, i + 1));
        values[0] = radius * direction.cosine;
        values[1] = radius * direction.sine;
    }
    __device__ static double exponential(const Block &block, int i)
    {
        return -log_of_fraction(Grid<double>::open(block, i));
    }
};

// The parts of complex numbers have a mean each.
struct Normal {
    static const int per_block = Grid<D>::per_block;
    D minus_twice_variance, mean, second_mean, std;

    __device__ void draw_computed(const Block &block, D *values) const
    {
        for (int i = 0; i < per_block; i += 2) {
            Deviates<D>::normal(block, i, minus_twice_variance, values + i);
            values[i] = scaled(values[i], std, mean);
            values[i + 1] = scaled(values[i + 1], std, second_mean);
        }
    }
    __device__ void draw(const Block &block, int64, T *values) const
    {
        D computed[per_block];
        draw_computed(block, computed);
        for (int i = 0; i < per_block; ++i)
            values[i] = computed[i];
    }
};

struct LogNormal : Normal {
    __device__ void draw(const Block &block, int64, T *values) const
    {
        D computed[per_block];
        draw_computed(block, computed);
        for (int i = 0; i < per_block; ++i)
            values[i] = (D)exp((double)computed[i]);
    }
};

struct Exponential {
    static const int per_block = Grid<D>::per_block;
    D rate;

    __device__ void draw(const Block &block, int64, T *values) const
    {
        for (int i = 0; i < per_block; ++i)
            values[i] = Deviates<D>::exponential(block, i) / rate;
    }
};

struct Cauchy {
    static const int per_block = Grid<D>::per_block;
    D median, sigma;

    __device__ void draw(const Block &block, int64, T *values) const
    {
        for (int i = 0; i < per_block; ++i)
            values[i] = scaled((D)tangent_of_half_turns(Grid<D>::open(block, i) - 0.5), sigma, median);
    }
};

extern "C" __global__ void uniform(T *out, int64 n, uint64 seed, uint64 offset, const uint64 *state, double bottom, double span,
                                   double largest)
{
    fill(out, n, {seed, offset, state}, Uniform{(D)bottom, (D)span, (D)largest});
}

extern "C" __global__ void normal(T *out, int64 n, uint64 seed, uint64 offset, const uint64 *state, double minus_twice_variance, double mean,
                                  double second_mean, double std)
{
    fill(out, n, {seed, offset, state}, Normal{(D)minus_twice_variance, (D)mean, (D)second_mean, (D)std});
}

extern "C" __global__ void log_normal(T *out, int64 n, uint64 seed, uint64 offset, const uint64 *state, double mean, double std)
{
    fill(out, n, {seed, offset, state}, LogNormal{{-2, (D)mean, (D)mean, (D)std}});
}

extern "C" __global__ void exponential(T *out, int64 n, uint64 seed, uint64 offset, const uint64 *state, double rate)
{
    fill(out, n, {seed, offset, state}, Exponential{(D)rate});
}

extern "C" __global__ void cauchy(T *out, int64 n, uint64 seed, uint64 offset, const uint64 *state, double median, double sigma)
{
    fill(out, n, {seed, offset, state}, Cauchy{(D)median, (D)sigma});
}
