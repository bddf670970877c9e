/* Matrix products. */
#include "gemm.h"
#include "gemm_tile.h"
#include "gemm_transpose.h"
#include "memory.h"
#include "threads.h"

#include <string.h>

enum {
    DEPTH_BYTES = 1024,      /* of a row of the blocks: a panel of columns fills the first-level cache */
    BLOCK_BYTES = 512 << 10, /* of a block of packed rows: half of the second-level cache */
    PART_WORK = 1 << 20,     /* multiplications that are worth a thread */
};

/* The size of n's blocks: at most `most`, multiples of `unit`, and about equal. */
static ssize_t block_of(ssize_t n, ssize_t most, ssize_t unit) {
    ssize_t blocks = (n + most - 1) / most;
    return ((n + blocks - 1) / blocks + unit - 1) / unit * unit;
}

/* Cut a product of m by n into parts for the threads: several for each, so that a slow one takes fewer, with few bytes to pack. */
static void split(ssize_t m, ssize_t n, ssize_t k, ssize_t row_unit, ssize_t column_unit, ssize_t *part_rows,
                  ssize_t *part_columns) {
    ssize_t threads = thread_count(), work = m * n * k / PART_WORK;
    ssize_t parts = threads == 1 ? 1 : 4 * threads < work ? 4 * threads : work;
    ssize_t down = 1, across = 1;
    while (down * across < parts) {
        if (m / down / row_unit <= 1 && n / across / column_unit <= 1) break;
        if (m / down >= n / across) down *= 2;
        else across *= 2;
    }
    *part_rows = block_of(m, (m + down - 1) / down, row_unit);
    *part_columns = block_of(n, (n + across - 1) / across, column_unit);
}

#define TEMPLATE "gemm.inc"
#include "each_real.h"
