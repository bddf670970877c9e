/* The inner kernel of matrix products, tile_f32 and tile_f64: its size follows the registers of the level. */
#ifndef COREFW_GEMM_TILE_H
#define COREFW_GEMM_TILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Before a loop of up to 16 steps, a constant number, whose arrays shall become registers. */
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#define TILE_VECTORS 2
#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#define TILE_ROWS 14 /* 28 of 32 registers hold sums */
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#define TILE_ROWS 6 /* 12 of 16 */
#elif defined(__aarch64__)
#define VECTOR_BYTES 16
#define TILE_ROWS 12 /* 24 of 32 */
#else
#define VECTOR_BYTES 16
#define TILE_ROWS 6
#endif

#define TEMPLATE "gemm/gemm_tile.inc"
#include "core/each_real.h"
#define TEMPLATE "gemm/gemm_tile.inc"
#include "gemm/gemm_integers.h"

#endif
