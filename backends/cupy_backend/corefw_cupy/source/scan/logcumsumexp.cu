// Running logarithms of sums of exponentials.

#include "core/logarithms.cuh"
#include "scan/scan.cuh"
