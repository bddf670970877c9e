/* The walk of packed matrix products over blocks and threads.
 *
 * For each block of k, and of as many rows as the second-level cache holds, the left factor is packed; then each panel
 * of the right one meets all of them. Right panels that several parts read are packed before, once. Sums of more than one
 * block of k are kept in a scratch, tile by tile. */
#include "gemm/gemm_packed.h"

#include "core/halves.h"
#include "core/memory.h"
#include "core/sizes.h"
#include "gemm/gemm_blocks.h"

#include <stdint.h>
#include <string.h>

enum {
    LEFT_BYTES = 512 << 10, /* of packed rows: a quarter of the second-level cache */
    SUMS_BYTES = 1 << 20,   /* of the scratch, beside them */
    MOST_COLUMNS = 32,      /* of a tile */
    SLAB = 64,              /* elements of k that one thread packs of rows that are contiguous across k */
};
static const ssize_t RIGHT_BYTES = 64 << 20; /* of right panels that are packed before */

struct job {
    const struct product *product;
    const struct engine *with;
    ssize_t first, columns; /* of c that are computed now */
    ssize_t part_rows, part_columns;
    ssize_t depth, height; /* of blocks of k and of rows */
    char *right;           /* packed panels, or NULL if each part packs its own */
    bool failed, untrue;   /* no memory; put returned false */
};

static inline ssize_t parts_of(ssize_t n, ssize_t part) { return (n + part - 1) / part; }

static inline ssize_t smaller(ssize_t a, ssize_t b) { return a < b ? a : b; }

/* -- packing the right factor for all parts -- */
/* Where the right panel from `column` on is packed. */
static char *panel_of(const struct job *job, ssize_t column) {
    const struct engine *e = job->with;
    return job->right + (column - job->first) / e->columns * parts_of(job->product->k, e->unit) * e->right_bytes;
}

/* Pack elements l to l + k of the panel from `column` on. */
static void pack_panel(const struct job *job, ssize_t column, ssize_t l, ssize_t k, char *packed) {
    const struct product *p = job->product;
    const struct engine *e = job->with;
    e->pack_right(k, (int)smaller(job->first + job->columns - column, e->columns),
                  (const char *)p->b + (l * p->b_row + column * p->b_column) * e->size, p->b_column, p->b_row, packed);
}

static void pack_panels(void *context, ssize_t begin, ssize_t end) {
    const struct job *job = context;
    for (ssize_t i = begin; i < end; i++)
        pack_panel(job, job->first + i * job->with->columns, 0, job->product->k,
                   panel_of(job, job->first + i * job->with->columns));
}

/* The same in the order of memory where rows are contiguous: of all panels, slabs begin to end of k. */
static void pack_slabs(void *context, ssize_t begin, ssize_t end) {
    const struct job *job = context;
    const struct engine *e = job->with;
    for (ssize_t i = begin; i < end; i++)
        for (ssize_t column = job->first; column < job->first + job->columns; column += e->columns)
            pack_panel(job, column, i * SLAB, smaller(SLAB, job->product->k - i * SLAB),
                       panel_of(job, column) + i * SLAB / e->unit * e->right_bytes);
}

/* -- multiplying -- */
/* The rows and columns of c that begin at (row, column), on this thread alone. */
static bool multiply_part(struct job *job, ssize_t row, ssize_t m, ssize_t column, ssize_t n) {
    const struct product *p = job->product;
    const struct engine *e = job->with;
    ssize_t blocks = parts_of(p->k, job->depth), tile = (ssize_t)e->rows * e->columns;
    ssize_t height = smaller(job->height, m), tiles = parts_of(height, e->rows);
    ssize_t width = blocks < 2 ? n : block_of(n, SUMS_BYTES / (height * 4) + e->columns, e->columns);
    ssize_t left_panel = job->depth / e->unit * e->left_bytes, own = job->depth / e->unit * e->right_bytes;
    ssize_t kept = tiles * (blocks < 2 ? 1 : parts_of(width, e->columns));
    char *left = allocate_items(size_plus(tiles * left_panel + own, kept * tile * 4), 1), *panel = left + tiles * left_panel;
    if (!left) return false;
    int32_t *scratch = (int32_t *)(panel + own); /* or floats */
    if (e->begin) e->begin();
    for (ssize_t i = row; i < row + m; i += height)
        for (ssize_t from = column; from < column + n; from += width)
            for (ssize_t l = 0; l == 0 || l < p->k; l += job->depth) {
                ssize_t k = smaller(job->depth, p->k - l), rows = smaller(height, row + m - i);
                for (ssize_t t = 0; t * e->rows < rows; t++)
                    e->pack_left(k, (int)smaller(rows - t * e->rows, e->rows),
                                 (const char *)p->a + ((i + t * e->rows) * p->a_row + l * p->a_column) * e->size,
                                 p->a_row, p->a_column, left + t * left_panel);
                int32_t *sums = scratch;
                for (ssize_t j = from; j < smaller(from + width, column + n); j += e->columns) {
                    int across = (int)smaller(column + n - j, e->columns);
                    if (!job->right) pack_panel(job, j, l, k, panel);
                    const char *right = job->right ? panel_of(job, j) + l / e->unit * e->right_bytes : panel;
                    for (ssize_t near = 0; near == 0 || near < k; near += e->stretch)
                        for (ssize_t t = 0; t * e->rows < rows; t++) {
                            int down = (int)smaller(rows - t * e->rows, e->rows);
                            ssize_t n = smaller(e->stretch, k - near);
                            e->multiply(n, left + t * left_panel + near / e->unit * e->left_bytes,
                                        right + near / e->unit * e->right_bytes, down, across, l + near > 0,
                                        sums + t * tile);
                            if (l + near + n == p->k && !e->put(p, i + t * e->rows, j, down, across, sums + t * tile))
                                job->untrue = true;
                        }
                    if (blocks > 1) sums += tiles * tile;
                }
            }
    if (e->end) e->end();
    release(left);
    return true;
}

static void multiply_parts(void *context, ssize_t begin, ssize_t end) {
    struct job *job = context;
    ssize_t across = parts_of(job->columns, job->part_columns);
    for (ssize_t part = begin; part < end; part++) {
        ssize_t row = part / across * job->part_rows, column = part % across * job->part_columns;
        if (!multiply_part(job, row, smaller(job->part_rows, job->product->m - row), job->first + column,
                           smaller(job->part_columns, job->columns - column)))
            job->failed = true;
    }
}

bool multiply_packed(const struct product *p, const struct engine *e) {
    if (p->m == 0 || p->n == 0) return true;
    struct job job = {.product = p, .with = e, .depth = p->k ? block_of(p->k, e->depth, e->unit) : e->unit};
    ssize_t left_panel = job.depth / e->unit * e->left_bytes;
    ssize_t right_panel = size_times(parts_of(p->k, e->unit), e->right_bytes);
    job.height = block_of(p->m, (LEFT_BYTES / left_panel + 1) * e->rows, e->rows);
    struct product part = *p;
    part.n = smaller(p->n, (RIGHT_BYTES / (right_panel + 1) + 1) * e->columns);
    split(&part, e->rows, e->columns, &job.part_rows, &job.part_columns);
    if (p->k && (job.part_rows < p->m || job.height < p->m)) {
        job.right = allocate_items(parts_of(part.n, e->columns), (size_t)right_panel);
        if (!job.right) return false;
    }
    for (; job.first < p->n; job.first += part.n) {
        job.columns = smaller(part.n, p->n - job.first);
        if (job.right && p->b_column == 1 && p->b_row != 1)
            parallel_for(parts_of(p->k, SLAB), grain_for(job.columns * SLAB / 8), pack_slabs, &job);
        else if (job.right)
            parallel_for(parts_of(job.columns, e->columns), grain_for(p->k * e->columns / 8), pack_panels, &job);
        parallel_for(parts_of(p->m, job.part_rows) * parts_of(job.columns, job.part_columns), 1, multiply_parts, &job);
    }
    release(job.right);
    return job.untrue ? e->otherwise(p) : !job.failed;
}

/* -- results -- */
static inline __attribute__((always_inline)) void put_halves(const bool brain, const struct product *p, ssize_t row,
                                                             ssize_t column, int rows, int columns, const float *sums,
                                                             int sums_row) {
    bool plain = !p->added && p->alpha == 1;
    float alpha = (float)p->alpha, beta = (float)p->beta, scaled[MOST_COLUMNS];
    for (int i = 0; i < rows; i++, sums += sums_row) {
        uint16_t *c = (uint16_t *)p->c + (row + i) * p->c_row + column;
        const uint16_t *added = (const uint16_t *)p->added + (row + i) * p->added_row + column * p->added_column;
        for (int j = 0; j < columns && !plain; j++) scaled[j] = alpha * sums[j];
        for (int j = 0; j < columns && p->added; j++) {
            uint16_t half = added[j * p->added_column];
            scaled[j] += beta * (brain ? float_of_bfloat16(half) : float_of_float16(half));
        }
        (brain ? narrow_bfloat16 : narrow_float16)(columns, plain ? sums : scaled, c);
    }
}

void put_bf16(const struct product *p, ssize_t row, ssize_t column, int rows, int columns, const float *sums,
              int sums_row) {
    put_halves(true, p, row, column, rows, columns, sums, sums_row);
}

void put_f16(const struct product *p, ssize_t row, ssize_t column, int rows, int columns, const float *sums,
             int sums_row) {
    put_halves(false, p, row, column, rows, columns, sums, sums_row);
}

void put_i32(const struct product *p, ssize_t row, ssize_t column, int rows, int columns, const int32_t *sums,
             int sums_row) {
    for (int i = 0; i < rows; i++)
        memcpy((int32_t *)p->c + (row + i) * p->c_row + column, sums + i * sums_row, 4 * (size_t)columns);
}
