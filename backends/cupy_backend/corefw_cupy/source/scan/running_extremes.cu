// The largest and smallest elements so far, and where they were found last.

#include "reduction/extremes.cuh"

typedef Placed<Larger, false> LastLargest;
typedef Placed<Smaller, false> LastSmallest;

#include "scan/scan.cuh"
