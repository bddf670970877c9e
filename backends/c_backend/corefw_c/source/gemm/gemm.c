/* Matrix products. */
#include "gemm/gemm.h"
#include "gemm/gemm_blocks.h"
#include "gemm/gemm_few.h"
#include "gemm/gemm_tile.h"
#include "core/caches.h"
#include "core/memory.h"
#include "core/threads.h"

#include <stdint.h>
#include <string.h>

#include "gemm/gemm_transpose.h"

enum {
    SMALL_WORK = 1 << 19,               /* multiplications at most of a product that is not packed, */
    SMALL_DEPTH = 128,                  /* and its k */
    DIRECT_PANELS = 4,                  /* of columns at most for which rows are not packed */
    FAR = 512,                          /* bytes between columns of the left factor, of which few lines fit a cache */
    FEW_COLUMNS = 10,                   /* at most of products by dot products, */
    FAR_BYTES = 1 << 20,                /* and bytes of a matrix at least that is read as it lies for more than one row, */
    MOST_BESIDE_ROWS = 16,              /* but not for more than these, if its rows are contiguous */
    DOT_STRETCH = 1 << 14,              /* elements of a dot product that one thread adds up */
};

/* The bytes of a row of a block, and of a block of packed rows, by the least second-level cache, the greatest first. */
static const struct blocking {
    ssize_t second_cache, depth_bytes, block_bytes;
} blockings[] = {
    /* Intel Xeon, 2 MiB, two threads: 360, 368 and 359 GFLOP/s for squares of 512, 1024 and 2048; blocked as below 326, 345
     * and 342 (PyTorch 377, 386 and 414). A panel of columns stays in the first cache. */
    {2 << 20, 1024, VECTOR_BYTES * 6144},
    {0, 2048, VECTOR_BYTES * 12288}, /* AMD Zen 5, 1 MiB, and what is not known */
};

static const struct blocking *blocking(void) {
    const struct blocking *found = blockings;
    while (second_cache() < found->second_cache) found++;
    return found;
}

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
