// Logarithms of sums of exponentials over dimensions.

#include "core/logarithms.cuh"
#include "reduction/reduction.cuh"
