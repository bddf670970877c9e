/* How matrix products are cut into blocks, and into parts for the threads. */
#ifndef COREFW_GEMM_BLOCKS_H
#define COREFW_GEMM_BLOCKS_H

#include "gemm/gemm.h"
#include "gemm/gemm_tile.h"
#include "core/threads.h"

enum { PART_WORK = 1 << 20 /* multiplications that are worth a thread */ };

/* The size of n's blocks: multiples of `unit`, about equal, about `most` at most. */
static inline ssize_t block_of(ssize_t n, ssize_t most, ssize_t unit) {
    ssize_t blocks = (n + most - 1) / most;
    return ((n + blocks - 1) / blocks + unit - 1) / unit * unit;
}

/* The rows of tile t, of `rows` in all. */
static inline int tile_rows(ssize_t rows, ssize_t t) {
    return rows - t * TILE_ROWS < TILE_ROWS ? (int)(rows - t * TILE_ROWS) : TILE_ROWS;
}

/* Cut a product into parts for the threads: several for each, so that a slow one takes fewer, but not so many that
 * packing b again for each stretch of rows costs more than that gains. Columns are cut rather than rows: packing a again
 * for each stretch of them costs less. */
static inline void split(const struct product *p, ssize_t tile_rows, ssize_t tile_columns, ssize_t *part_rows,
                         ssize_t *part_columns) {
    ssize_t threads = thread_count(), work = p->m * p->n * p->k / PART_WORK, down = 1, across = 1;
    ssize_t parts = threads == 1 ? 1 : 2 * threads < work ? 2 * threads : work;
    while (down * across < parts) {
        bool by_rows = p->m / down > (down * across < threads ? 1 : 8) * tile_rows,
             by_columns = p->n / across > (down * across < threads ? 1 : 3) * tile_columns;
        if (!by_rows && !by_columns) break;
        if (by_rows && (p->m / down > 2 * p->n / across || !by_columns)) down *= 2;
        else across *= 2;
    }
    *part_rows = block_of(p->m, (p->m + down - 1) / down, tile_rows);
    *part_columns = block_of(p->n, (p->n + across - 1) / across, tile_columns);
}

#endif
