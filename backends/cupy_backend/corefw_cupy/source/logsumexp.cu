// Logarithms of sums of exponentials over dimensions.

#include "logarithms.cuh"
#include "reduction.cuh"
