/* The inner kernel of matrix products, tile_f32 and tile_f64: its size follows the registers of the level. */
#ifndef COREFW_GEMM_TILE_H
#define COREFW_GEMM_TILE_H

#include <stdbool.h>
#include <sys/types.h>

#if defined(__AVX512F__)
enum { VECTOR_BYTES = 64, TILE_ROWS = 14, TILE_VECTORS = 2 }; /* 28 of 32 registers hold sums */
#elif defined(__AVX2__)
enum { VECTOR_BYTES = 32, TILE_ROWS = 6, TILE_VECTORS = 2 }; /* 12 of 16 */
#elif defined(__aarch64__)
enum { VECTOR_BYTES = 16, TILE_ROWS = 8, TILE_VECTORS = 3 }; /* 24 of 32 */
#else
enum { VECTOR_BYTES = 16, TILE_ROWS = 6, TILE_VECTORS = 2 };
#endif

#define TEMPLATE "gemm_tile.inc"
#include "each_real.h"

#endif
