// The gradients of the cross entropy and (without scores) of the negative log-likelihood of classes.

#include "loss/classes.cuh"

// The losses' side of the gradient.
struct LossGradient {
    const T *gradient; // of one loss, or (`each`) of all samples'
    const int64 *target;
    const T *weight;       // of the classes, or 0
    const double *weights; // what `blocks` summed for a mean, or 0: each block of the gradient sums them
    int64 blocks, samples, classes, ignored;
    bool each, mean;

    // What the gradient is divided by, computed by all threads of a block.
    __device__ A divisor() const
    {
        if (!mean)
            return A(1);
        double sum = 0;
        for (int64 block = threadIdx.x; block < blocks; block += blockDim.x)
            sum += weights[block];
        if (!weights)
            sum = sum_weights(target, weight, threadIdx.x, blockDim.x, samples, classes, ignored);
        return A(combine_block<Add>(sum, 0.0));
    }

    __device__ A of(int64 sample, int64 found, A divisor) const
    {
        A share = A(gradient[each ? sample : 0]) / divisor;
        return weight ? share * A(weight[found]) : share;
    }
};

// What makes probabilities of a sample's scores: the greatest one and the sum of exponentials relative to it.
struct Normalizer {
    A greatest, total;

    __device__ A probability(A score) const { return exp(score - greatest) / total; }
};

__device__ inline Normalizer normalizer_of(const A *normalizer, int64 sample, int64 samples)
{
    return normalizer ? Normalizer{normalizer[sample], normalizer[samples + sample]} : Normalizer{A(0), A(1)};
}

// d loss / d score
__device__ inline A slope(const T *scores, A score, Normalizer normalizer, bool is_class, A share)
{
    A hit = is_class ? A(-1) : A(0);
    if (scores)
        return (normalizer.probability(score) + hit) * share;
    return is_class ? -share : A(0);
}

// Samples are rows of scores; a row has `parts` of `length` elements, each for some lanes.
extern "C" __global__ void class_gradient_rows(
    const T *__restrict__ gradient, const T *__restrict__ input, const A *__restrict__ normalizer,
    const int64 *__restrict__ target, const T *__restrict__ weight, const double *__restrict__ weights, T *result,
    int64 samples, int64 classes, int64 lanes, int64 parts, int64 length, int64 blocks, int64 ignored, bool each,
    bool mean, int64 *device_asserts, int64 kind)
{
    LossGradient loss = {gradient, target, weight, weights, blocks, samples, classes, ignored, each, mean};
    A divisor = loss.divisor();
    int64 place = (int64)blockIdx.x * (blockDim.x / (int)lanes) + threadIdx.x / (int)lanes;
    int64 sample = place / parts, begin = place % parts * length;
    if (sample >= samples)
        return;
    int64 found = class_of(target, sample, classes, ignored, device_asserts, kind);
    A share = found == UNCOUNTED ? A(0) : loss.of(sample, found, divisor);
    Normalizer own = normalizer_of(normalizer, sample, samples);
    bool packed = packed_rows(classes, input, result);
    int64 end = min(classes, begin + length), first = sample * classes;
    walk(begin, end, threadIdx.x % (int)lanes, lanes, packed, [&](auto several, int64 at) {
        const int count = decltype(several)::count;
        A values[count] = {};
        if (input && found != UNCOUNTED)
            read<count>(input + first + at, values);
        for (int k = 0; k < count; ++k)
            values[k] = found == UNCOUNTED ? A(0) : slope(input, values[k], own, at + k == found, share);
        write<count>(result + first + at, values);
    });
}

// The classes are not the last dimension: a block writes the gradients of one class and neighbouring samples.
extern "C" __global__ void class_gradient_columns(
    const T *__restrict__ gradient, const T *__restrict__ input, const A *__restrict__ normalizer,
    const int64 *__restrict__ target, const T *__restrict__ weight, const double *__restrict__ weights, T *result,
    int64 n, int64 classes, int64 inner, int64 blocks, int64 ignored, bool each, bool mean, int64 *device_asserts,
    int64 kind)
{
    LossGradient loss = {gradient, target, weight, weights, blocks, n / classes, classes, ignored, each, mean};
    A divisor = loss.divisor();
    int64 at = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= n)
        return;
    int64 row = at / inner, outer = row / classes, sample = outer * inner + (at - row * inner);
    int64 found = class_of(target, sample, classes, ignored, device_asserts, kind);
    A value = 0;
    if (found != UNCOUNTED) {
        Normalizer own = normalizer_of(normalizer, sample, n / classes);
        A score = input ? A(input[at]) : A(0);
        value = slope(input, score, own, row - outer * classes == found, loss.of(sample, found, divisor));
    }
    result[at] = value;
}
