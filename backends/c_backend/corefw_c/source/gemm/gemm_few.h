/* Products of few rows or few columns, of which the larger factor is read as it lies. */
#ifndef COREFW_GEMM_FEW_H
#define COREFW_GEMM_FEW_H

#include "gemm/gemm.h"
#include "gemm/gemm_tile.h"

#include <stdbool.h>
#include <sys/types.h>

enum {
    FEW_ROWS = 40,                         /* that products may have at most */
    TOGETHER = VECTOR_BYTES == 64 ? 4 : 2, /* columns that meet three or four rows at once: their sums fit the registers */
    NEAR_BYTES = 1 << 15,                  /* of rows at most that stay in the first cache beside what they meet */
    AHEAD_BYTES = 1 << 12,                 /* how long before a column is asked for that one or two rows meet alone */
};

/* What few rows, or few columns, at most a product may have, by how the other factor lies. */
struct few {
    ssize_t beside_columns; /* contiguous along k, */
    ssize_t of_any_depth;   /* for any k, not only those beside which adding up lanes is cheap; */
    ssize_t beside_rows;    /* contiguous across k */
};

/* The product; false if it has more rows or another order, or there is no memory. */
typedef bool few_multiplication(const struct product *p, struct few most);
few_multiplication multiply_few_f32, multiply_few_f64, multiply_few_u32, multiply_few_u64, multiply_few_bf16,
    multiply_few_bf16_by_pairs, multiply_few_f16;

/* How many rows of the left factor are there where m are wanted: as many as meet columns at once. */
static inline ssize_t rounded_rows(ssize_t m) { return m <= 2 ? m : (m + 3) / 4 * 4; }

/* The bytes from row to row of a copy whose rows are whole lines: neighbours are not in the same places of a cache. */
static inline ssize_t padded(ssize_t bytes) { return (bytes + 63) / 64 * 64 + 64; }

/* The transpose of a product, but for where it is written. */
static inline struct product turned(const struct product *p) {
    return (struct product){.m = p->n, .n = p->m, .k = p->k, .a = p->b, .b = p->a, .a_row = p->b_column,
                            .a_column = p->b_row, .b_row = p->a_column, .b_column = p->a_row};
}

#endif
