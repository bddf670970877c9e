/* Matrix products. */
#include "gemm/gemm.h"
#include "gemm/gemm_blocks.h"
#include "gemm/gemm_tile.h"
#include "core/memory.h"
#include "core/threads.h"

#include <stdint.h>
#include <string.h>

#include "gemm/gemm_transpose.h"

enum {
    DEPTH_BYTES = 2048,                 /* of a row of a block: the panels that a tile reads fit the first two caches */
    BLOCK_BYTES = VECTOR_BYTES * 12288, /* of a block of packed rows: most of the second-level cache */
    SMALL_WORK = 1 << 19,               /* multiplications at most of a product that is not packed, */
    SMALL_DEPTH = 128,                  /* and its k */
    DIRECT_PANELS = 4,                  /* of columns at most for which rows are not packed */
    FAR = 512,                          /* bytes between columns of the left factor, of which few lines fit a cache */
    FEW_ROWS = 40,                      /* at most of products by dot products, */
    FEW_COLUMNS = 10,                   /* or columns */
    FAR_BYTES = 1 << 20,                /* of a matrix at least that is asked for before it meets a few vectors, */
    AHEAD_BYTES = 1 << 14,              /* how long before, */
    MOST_VECTORS = 8,                   /* and how many, if its columns are contiguous: */
    FAR_ROWS = 256,                     /* so many of its rows at least, which lie together, for a thread */
    DOT_STRETCH = 1 << 14,              /* elements of a dot product that one thread adds up */
    DOT_COLUMNS = VECTOR_BYTES == 64 ? 4 : 2,
};

#define TEMPLATE "gemm/gemm.inc"
#include "core/each_real.h"
#define TEMPLATE "gemm/gemm.inc"
#include "gemm/gemm_integers.h"

bool gemm_f32(ssize_t m, ssize_t n, ssize_t k, const float *a, ssize_t a_row, ssize_t a_column, const float *b,
              ssize_t b_row, ssize_t b_column, float *c, ssize_t c_row, bool accumulate) {
    return multiply_f32(
        &(struct product){m, n, k, a, b, accumulate ? c : NULL, c, a_row, a_column, b_row, b_column, c_row, c_row, 1,
                          1, 1});
}

bool gemm_f64(ssize_t m, ssize_t n, ssize_t k, const double *a, ssize_t a_row, ssize_t a_column, const double *b,
              ssize_t b_row, ssize_t b_column, double *c, ssize_t c_row, bool accumulate) {
    return multiply_f64(
        &(struct product){m, n, k, a, b, accumulate ? c : NULL, c, a_row, a_column, b_row, b_column, c_row, c_row, 1,
                          1, 1});
}
