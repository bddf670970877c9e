// Running logarithms of sums of exponentials.

#include "logarithms.cuh"
#include "scan.cuh"
