/* Matrix products. */
#include "gemm.h"
#include "gemm_tile.h"
#include "memory.h"
#include "threads.h"

#include <stdint.h>
#include <string.h>

#include "gemm_transpose.h"

enum {
    DEPTH_BYTES = 2048,                  /* of a row of a block: the panels that a tile reads fit the first two caches */
    BLOCK_BYTES = VECTOR_BYTES * 12288,  /* of a block of packed rows: most of the second-level cache */
    PART_WORK = 1 << 20,                 /* multiplications that are worth a thread */
    SMALL_WORK = 1 << 19,                /* multiplications at most of a product that is not packed, */
    SMALL_DEPTH = 128,                   /* and its k */
    DIRECT_PANELS = 4,                   /* of columns at most for which rows are not packed */
    FEW = 10,                            /* rows or columns at most of products by dot products */
    DOT_STRETCH = 1 << 14,               /* elements of a dot product that one thread adds up */
    DOT_COLUMNS = VECTOR_BYTES == 64 ? 4 : 2,
};

/* The size of n's blocks: multiples of `unit`, about equal, about `most` at most. */
static ssize_t block_of(ssize_t n, ssize_t most, ssize_t unit) {
    ssize_t blocks = (n + most - 1) / most;
    return ((n + blocks - 1) / blocks + unit - 1) / unit * unit;
}

/* The rows of tile t, of `rows` in all. */
static int tile_rows(ssize_t rows, ssize_t t) {
    return rows - t * TILE_ROWS < TILE_ROWS ? (int)(rows - t * TILE_ROWS) : TILE_ROWS;
}

/* Cut a product into parts for the threads: several for each, so that a slow one takes fewer, but not so many that packing b
 * again for each stretch of rows costs more than that gains. */
static void split(const struct product *p, ssize_t tile_columns, ssize_t *part_rows, ssize_t *part_columns) {
    ssize_t threads = thread_count(), work = p->m * p->n * p->k / PART_WORK, down = 1, across = 1;
    ssize_t parts = threads == 1 ? 1 : 4 * threads < work ? 4 * threads : work;
    while (down * across < parts) {
        bool by_rows = p->m / down > (down * across < threads ? 1 : 8) * TILE_ROWS, by_columns = p->n / across > tile_columns;
        if (!by_rows && !by_columns) break;
        if (by_rows && (p->m / down >= p->n / across || !by_columns)) down *= 2;
        else across *= 2;
    }
    *part_rows = block_of(p->m, (p->m + down - 1) / down, TILE_ROWS);
    *part_columns = block_of(p->n, (p->n + across - 1) / across, tile_columns);
}

#define TEMPLATE "gemm.inc"
#include "each_real.h"
#define TEMPLATE "gemm.inc"
#include "gemm_integers.h"

bool gemm_f32(ssize_t m, ssize_t n, ssize_t k, const float *a, ssize_t a_row, ssize_t a_column, const float *b, ssize_t b_row,
              ssize_t b_column, float *c, ssize_t c_row, bool accumulate) {
    return multiply_f32(&(struct product){m, n, k, a, b, accumulate ? c : NULL, c, a_row, a_column, b_row, b_column, c_row,
                                          c_row});
}

bool gemm_f64(ssize_t m, ssize_t n, ssize_t k, const double *a, ssize_t a_row, ssize_t a_column, const double *b,
              ssize_t b_row, ssize_t b_column, double *c, ssize_t c_row, bool accumulate) {
    return multiply_f64(&(struct product){m, n, k, a, b, accumulate ? c : NULL, c, a_row, a_column, b_row, b_column, c_row,
                                          c_row});
}
