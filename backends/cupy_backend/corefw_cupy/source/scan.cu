// Running sums and products.

#include "sums.cuh"
#include "scan.cuh"
