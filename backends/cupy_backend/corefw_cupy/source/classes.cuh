// Targets of losses that are classes, one for each sample.

#include "rows.cuh"

const int64 UNCOUNTED = -1; // a sample that gives neither loss nor gradient

// The class of a sample; UNCOUNTED, and a report, if there is no such class.
__device__ inline int64 class_of(const int64 *target, int64 sample, int64 classes, int64 ignored, int64 *faults,
                                 int64 kind)
{
    int64 found = target[sample];
    if (found == ignored)
        return UNCOUNTED;
    if (found >= 0 && found < classes)
        return found;
    report(faults, kind, found, classes, 0);
    return UNCOUNTED;
}
