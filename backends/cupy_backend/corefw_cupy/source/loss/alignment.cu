// Connectionist temporal classification: the loss of labels whose places in time are not known, and its gradient.
// Scores are [times][samples][classes]. A target of n labels has 2 n + 1 states: blanks and, at odd places, labels.

#include "core/block.cuh"
#include "core/device_asserts.cuh"

const double IMPOSSIBLE = -1e30; // the logarithm that stands for that of 0 (corefw/declarations/alignment.py)

struct Sizes {
    int64 times, samples, classes, labels, blank;
};

struct Target {
    const int64 *labels;
    Sizes sizes;
    int64 length, states, last; // times and states that count, and the last of these

    __device__ Target(const int64 *targets, const int64 *lengths, const int64 *counts, Sizes given, int64 sample)
        : labels(targets + sample * given.labels), sizes(given), states(2 * given.labels + 1)
    {
        length = min(max(lengths[sample], (int64)0), given.times);
        last = 2 * min(max(counts[sample], (int64)0), given.labels);
    }

    __device__ int64 of(int64 state) const { return state % 2 ? labels[state / 2] : sizes.blank; }

    // Whether a path may enter a state past a blank, from another label.
    __device__ bool passing(int64 state) const
    {
        return state > 1 && state < states && of(state) != sizes.blank && of(state) != of(state - 2);
    }
};

// The class of a state that there is; the blank, and a report, if there is no such class.
__device__ inline int64 known_class(const Target &target, int64 state, int64 *device_asserts, int64 kind)
{
    int64 found = target.of(state);
    if (found >= 0 && found < target.sizes.classes)
        return found;
    report(device_asserts, kind, found, target.sizes.classes, 0);
    return target.sizes.blank;
}

// The logarithm of the probability of a class; x is a row of scores.
__device__ inline T emitted(const T *x, int64 found) { return x[found] < T(IMPOSSIBLE) ? T(IMPOSSIBLE) : x[found]; }

__device__ inline T log_sum(T a, T b, T c)
{
    T most = a > b ? a : b;
    most = most > c ? most : c;
    return most + log(exp(a - most) + exp(b - most) + exp(c - most));
}

// Writes the paths that lead to each state, before the first step and after each, to rows of which `held` are kept;
// gives the logarithm of the probability of the target.
__device__ T lead(const T *x, const Target &target, T *rows, int64 held, int64 *device_asserts, int64 kind)
{
    int64 states = target.states;
    for (int64 s = threadIdx.x; s < states; s += blockDim.x)
        rows[s] = s ? T(IMPOSSIBLE) : T(0);
    __syncthreads();
    for (int64 t = 0; t < target.length; ++t) {
        const T *paths = rows + t % held * states;
        T *following = rows + (t + 1) % held * states;
        for (int64 s = threadIdx.x; s < states; s += blockDim.x) {
            T before = s ? paths[s - 1] : T(IMPOSSIBLE);
            T past = target.passing(s) ? paths[s - 2] : T(IMPOSSIBLE);
            following[s] = log_sum(paths[s], before, past) + emitted(x, known_class(target, s, device_asserts, kind));
        }
        x += target.sizes.samples * target.sizes.classes;
        __syncthreads();
    }
    const T *paths = rows + target.length % held * states;
    return log_sum(paths[target.last], target.last ? paths[target.last - 1] : T(IMPOSSIBLE), T(IMPOSSIBLE));
}

// A block has a sample.
extern "C" __global__ void ctc_costs(
    const T *__restrict__ input, const int64 *__restrict__ targets, const int64 *__restrict__ lengths,
    const int64 *__restrict__ counts, T *losses, T *rows, int64 times, int64 samples, int64 classes, int64 labels,
    int64 blank, bool zero_infinity, int64 *device_asserts, int64 kind)
{
    int64 sample = blockIdx.x;
    Target target(targets, lengths, counts, Sizes{times, samples, classes, labels, blank}, sample);
    T total = lead(input + sample * classes, target, rows + sample * 2 * target.states, 2, device_asserts, kind);
    if (threadIdx.x == 0)
        losses[sample] = total > T(IMPOSSIBLE / 2) || total != total ? -total : zero_infinity ? T(0) : T(INFINITY);
}

// The share of the paths of a target that are in each state at each time, in the rows from the second on; a block has a
// sample, with times + 3 rows.
extern "C" __global__ void ctc_shares(
    const T *__restrict__ input, const int64 *__restrict__ targets, const int64 *__restrict__ lengths,
    const int64 *__restrict__ counts, T *totals, T *rows, int64 times, int64 samples, int64 classes, int64 labels,
    int64 blank, int64 *device_asserts, int64 kind)
{
    int64 sample = blockIdx.x;
    Target target(targets, lengths, counts, Sizes{times, samples, classes, labels, blank}, sample);
    int64 states = target.states;
    const T *x = input + sample * classes;
    rows += sample * (times + 3) * states;
    T total = lead(x, target, rows, times + 1, device_asserts, kind);
    if (threadIdx.x == 0)
        totals[sample] = total;
    T *later = rows + (times + 1) * states, *preceding = later + states;
    for (int64 s = threadIdx.x; s < states; s += blockDim.x)
        later[s] = s == target.last || s == target.last - 1 ? T(0) : T(IMPOSSIBLE);
    __syncthreads();
    for (int64 t = target.length - 1; t >= 0; --t) {
        const T *scores = x + t * samples * classes;
        T *paths = rows + (t + 1) * states;
        auto ahead = [&](int64 state) {
            return state < states ? later[state] + emitted(scores, known_class(target, state, device_asserts, kind))
                                  : T(IMPOSSIBLE);
        };
        for (int64 s = threadIdx.x; s < states; s += blockDim.x) {
            paths[s] = exp(paths[s] + later[s] - total);
            T past = target.passing(s + 2) ? ahead(s + 2) : T(IMPOSSIBLE);
            preceding[s] = log_sum(ahead(s), ahead(s + 1), past);
        }
        T *former = later;
        later = preceding;
        preceding = former;
        __syncthreads();
    }
}

// A row of the gradient: the probabilities of the classes less the shares of the paths. A block has a row.
extern "C" __global__ void ctc_gradient(
    const T *__restrict__ gradient, const T *__restrict__ input, const int64 *__restrict__ targets,
    const int64 *__restrict__ lengths, const int64 *__restrict__ counts, const T *__restrict__ totals,
    const T *__restrict__ rows, T *result, int64 times, int64 samples, int64 classes, int64 labels, int64 blank,
    bool zero_infinity)
{
    int64 t = blockIdx.x / samples, sample = blockIdx.x % samples;
    Target target(targets, lengths, counts, Sizes{times, samples, classes, labels, blank}, sample);
    const T *x = input + blockIdx.x * classes, *shares = rows + (sample * (times + 3) + t + 1) * target.states;
    T *y = result + blockIdx.x * classes;
    T total = totals[sample], g = gradient[sample];
    bool impossible = total <= T(IMPOSSIBLE / 2);
    if (t >= target.length || impossible) {
        T filling = t >= target.length || zero_infinity ? T(0) : T(NAN);
        for (int64 c = threadIdx.x; c < classes; c += blockDim.x)
            y[c] = filling;
        return;
    }
    T blanks = 0;
    for (int64 s = threadIdx.x; s < target.states; s += blockDim.x)
        blanks += target.of(s) == blank ? shares[s] : T(0);
    blanks = combine_block<Add>(blanks, T(0));
    for (int64 c = threadIdx.x; c < classes; c += blockDim.x)
        y[c] = (exp(x[c]) - (c == blank ? blanks : T(0))) * g;
    __syncthreads();
    for (int64 i = threadIdx.x; i < labels; i += blockDim.x) { // the first place of a label sums over all
        int64 found = target.labels[i];
        bool counts_here = found != blank && found >= 0 && found < classes;
        for (int64 j = 0; j < i && counts_here; ++j)
            counts_here = target.labels[j] != found;
        if (!counts_here)
            continue;
        T share = 0;
        for (int64 j = i; j < labels; ++j)
            share += target.labels[j] == found ? shares[2 * j + 1] : T(0);
        y[found] -= share * g;
    }
}
