// Targets of losses that are classes, one for each sample.

#include "core/rows.cuh"

const int64 UNCOUNTED = -1; // a sample that gives neither loss nor gradient

// The class of a sample; UNCOUNTED, and a report, if there is no such class.
__device__ inline int64 class_of(const int64 *target, int64 sample, int64 classes, int64 ignored, int64 *device_asserts,
                                 int64 kind)
{
    int64 found = target[sample];
    if (found == ignored)
        return UNCOUNTED;
    if (found >= 0 && found < classes)
        return found;
    report(device_asserts, kind, found, classes, 0);
    return UNCOUNTED;
}

// The weight of a class, 1 if there are no weights.
__device__ inline A weight_of(const T *weight, int64 found)
{
    return found == UNCOUNTED ? A(0) : weight ? A(weight[found]) : A(1);
}

// The sum of the weights of each `step`th target from `first` on; classes that there are not are not reported.
__device__ inline double sum_weights(const int64 *target, const T *weight, int64 first, int64 step, int64 samples,
                                     int64 classes, int64 ignored)
{
    double sum = 0;
    for (int64 sample = first; sample < samples; sample += step) {
        int64 found = target[sample];
        if (found != ignored && found >= 0 && found < classes)
            sum += weight_of(weight, found);
    }
    return sum;
}
