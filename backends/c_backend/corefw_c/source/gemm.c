/* Matrix products. */
#include "gemm.h"

#define TEMPLATE "gemm.inc"
#include "each_real.h"
