// Running sums and products.

#include "reduction/sums.cuh"
#include "scan/scan.cuh"
