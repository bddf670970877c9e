// The mean and the variance of the elements of a group, and what is written of them.

#include "normalization/groups.cuh"
#include "normalization/moments.cuh"

// Moments of the elements that one thread visits: distances from the first one, which do not cancel.
struct Moving {
    A pivot, sum, squares;
    int64 count;

    template <int several> __device__ void add(const A (&values)[several], bool centred)
    {
        if (count == 0 && centred)
            pivot = values[0];
        count += several;
        for (int k = 0; k < several; ++k) {
            A distance = values[k] - pivot;
            sum += distance;
            squares += distance * distance;
        }
    }

    // The mean of what is not to be centred counts as 0.
    __device__ Moments<A> moments(bool centred) const
    {
        if (!centred || count == 0)
            return {A(count), A(0), squares};
        return {A(count), pivot + sum / A(count), max(A(0), squares - sum * (sum / A(count)))};
    }
};

// Statistics of groups; those that are 0 are not wanted.
struct Statistics {
    A *means, *variances, *scales;

    __device__ void put(int64 group, Moments<A> moments, A eps) const
    {
        A variance = moments.squares / moments.count;
        if (means)
            means[group] = moments.mean;
        if (variances)
            variances[group] = variance;
        if (scales)
            scales[group] = 1 / sqrt(variance + eps);
    }
};
