/* The walk of packed matrix products over blocks and threads.
 *
 * A part has as many rows as the second-level cache holds of a block of k; its left panels are packed, then each panel of
 * the right factor, a stretch at a time, meets all of them. Right panels that several parts read are packed before, once.
 * Sums of more than one block of k are kept in a scratch, tile by tile. */
#include "gemm/gemm_packed.h"

#include "core/caches.h"
#include "core/memory.h"
#include "core/sizes.h"
#include "gemm/gemm_blocks.h"

#include <stdint.h>
#include <string.h>

#include "gemm/gemm_transpose.h"

enum {
    FEW_PANELS = 4,    /* of the right factor at most for which left panels are not worth packing */
    BLOCK_ROWS = 256,  /* of a part at most: a block of k of them stays in the second-level cache */
};
static const ssize_t RIGHT_BYTES = 64 << 20, /* of right panels that are packed before, */
    OWN_BYTES = 512 << 10;                   /* and that two threads rather pack for themselves than wait for each other */

struct job {
    const struct product *product; /* what is computed, */
    const struct product *result;  /* what is written: its transpose if `turned` */
    const struct engine *with;
    ssize_t first, columns; /* of c that are computed now */
    ssize_t part_rows, part_columns;
    ssize_t depth, stretch; /* of blocks of k, and of what is multiplied at once */
    char *right;            /* packed panels, or NULL if each part packs its own */
    bool turned, direct;    /* left panels are read where they are */
    bool apart;             /* each thread has columns of its own, of all rows */
    bool failed, untrue;    /* no memory; put returned false */
};

static inline ssize_t parts_of(ssize_t n, ssize_t part) { return (n + part - 1) / part; }

static inline ssize_t smaller(ssize_t a, ssize_t b) { return a < b ? a : b; }

static inline ssize_t larger(ssize_t a, ssize_t b) { return a > b ? a : b; }

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
/* Transpose a square tile of sums. */
static void turn_tile(uint32_t *sums, int side) {
    enum { LANES = VECTOR_BYTES / 4 };
    for (int i = 0; i < side; i += LANES)
        for (int j = 0; j <= i; j += LANES) {
            vector_u32 block[2][LANES];
            uint32_t *at[2] = {sums + i * side + j, sums + j * side + i};
            UNROLL for (int l = 0; l < LANES; l++) memcpy(&block[0][l], at[0] + l * side, sizeof block[0][l]);
            UNROLL for (int l = 0; l < LANES; l++) memcpy(&block[1][l], at[1] + l * side, sizeof block[1][l]);
            transpose_u32(block[0]), transpose_u32(block[1]);
            UNROLL for (int l = 0; l < LANES; l++) memcpy(at[1] + l * side, &block[0][l], sizeof block[0][l]);
            if (i != j)
                UNROLL for (int l = 0; l < LANES; l++) memcpy(at[0] + l * side, &block[1][l], sizeof block[1][l]);
        }
}

static bool put_tile(const struct job *job, ssize_t row, ssize_t column, int rows, int columns, void *sums) {
    if (!job->turned) return job->with->put(job->result, row, column, rows, columns, sums);
    turn_tile(sums, job->with->columns);
    return job->with->put(job->result, column, row, columns, rows, sums);
}

/* Ask for lines of the right panel from `column` on, elements l to l + k of them: the t-th of `tiles` parts. */
static void ask(const struct job *job, ssize_t column, int lines, ssize_t l, ssize_t k, ssize_t t, ssize_t tiles) {
    enum { LINE = 64 };
    const struct product *p = job->product;
    for (ssize_t i = lines * t / tiles; i < lines * (t + 1) / tiles; i++) {
        const char *line = (const char *)p->b + ((column + i) * p->b_column + l) * job->with->size;
        for (ssize_t at = 0; at < k * job->with->size; at += LINE) __builtin_prefetch(line + at, 0, 2);
    }
}

/* The rows and columns of c that begin at (row, column), on this thread alone. */
static bool multiply_part(struct job *job, ssize_t row, ssize_t m, ssize_t column, ssize_t n) {
    const struct product *p = job->product;
    const struct engine *e = job->with;
    ssize_t blocks = parts_of(p->k, job->depth), tile = (ssize_t)e->rows * e->columns;
    ssize_t height = job->direct ? e->rows : block_of(m, e->rows, e->least_rows), tiles = parts_of(m, height);
    ssize_t left_panel = job->depth / e->unit * e->left_bytes, own = job->depth / e->unit * e->right_bytes;
    bool at_once = p->k <= job->stretch; /* so that sums need not be kept */
    bool asks = e->asks && !job->right && p->b_row == 1;
    ssize_t early = tiles / 4 * 3; /* of the tiles: what is asked for beside them would be gone before it is packed */
    ssize_t kept = at_once ? 1 : blocks < 2 ? tiles : size_times(tiles, parts_of(n, e->columns));
    char *left = allocate_items(size_plus(tiles * left_panel + own, size_times(kept, tile * 4)), 1);
    if (!left) return false;
    char *panel = left + tiles * left_panel;
    int32_t *scratch = (int32_t *)(panel + own); /* or floats */
    if (e->begin) e->begin();
    for (ssize_t l = 0; l == 0 || l < p->k; l += job->depth) {
        ssize_t k = smaller(job->depth, p->k - l), whole = job->direct && k % e->unit == 0 ? m / height : 0;
        const char *a = (const char *)p->a + (row * p->a_row + l * p->a_column) * e->size;
        /* lines that lie side by side are packed in the order of memory */
        for (ssize_t at = 0, slab = p->a_row == 1 ? SLAB : k; at < k; at += slab)
            for (ssize_t t = whole; t < tiles; t++)
                e->pack_left(smaller(slab, k - at), (int)smaller(m - t * height, height),
                             a + (t * height * p->a_row + at * p->a_column) * e->size, p->a_row, p->a_column,
                             left + t * left_panel + at / e->unit * e->left_bytes);
        int32_t *sums = scratch;
        for (ssize_t j = column; j < column + n; j += e->columns) {
            int across = (int)smaller(column + n - j, e->columns), asked = (int)smaller(column + n - j - across, e->columns);
            if (!job->right) pack_panel(job, j, l, k, panel);
            const char *right = job->right ? panel_of(job, j) + l / e->unit * e->right_bytes : panel;
            for (ssize_t near = 0; near == 0 || near < k; near += job->stretch) {
                ssize_t step = smaller(job->stretch, k - near), ahead = parts_of(step, e->unit) * e->right_bytes;
                bool last = l + near + step == p->k, goes_on = job->right && (near + step < k || j + across < column + n);
                const char *next = goes_on ? right + ahead : right;
                for (ssize_t t = 0; t < tiles; t++) {
                    int down = (int)smaller(m - t * height, height);
                    if (asks && t >= early) ask(job, j + across, asked, l + near, step, t - early, tiles - early);
                    int32_t *sum = at_once ? sums : sums + t * tile;
                    const char *from = t < whole ? a + (t * height * p->a_row + near) * e->size
                                                 : left + t * left_panel + near / e->unit * e->left_bytes;
                    e->multiply(step, from, t < whole ? p->a_row * e->size : 0, right, down, across, l + near > 0, sum,
                                next + ahead / tiles * t);
                    if (last && !put_tile(job, row + t * height, j, down, across, sum)) job->untrue = true;
                }
                right += ahead;
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

/* The depth of blocks of which the left panels of all rows stay in the second-level cache, beside a right panel and its
 * lines, if threads shall have columns of their own, else 0: the left factor is packed for each of them, short blocks read
 * sums more often, and long rows of the result leave the cache line by line. */
static ssize_t depth_apart(const struct product *p, const struct engine *e) {
    enum { LONG_ROWS = 16 };
    if (!e->asks || p->b_row != 1 || p->m <= BLOCK_ROWS) return 0;
    if (p->n < (thread_count() - 1) * p->m || p->n > LONG_ROWS * p->m) return 0;
    ssize_t most = second_cache() / 16 * 13 / (e->left_bytes / e->rows * p->m) * e->unit;
    return most < smaller(p->k, e->depth / 4 * 3) ? 0 : smaller(most, e->depth);
}

/* Cut the product into parts: of a block's rows, or of fewer, so that nothing is packed twice, or of columns if there
 * are few rows, about two for each thread. */
static void cut(struct job *job) {
    const struct product *p = job->product;
    const struct engine *e = job->with;
    ssize_t threads = thread_count(), worth = larger(p->m * job->columns * p->k / PART_WORK, 1);
    ssize_t wanted = threads == 1 ? 1 : smaller(2 * threads, worth), down = parts_of(p->m, BLOCK_ROWS), across = 1;
    if (job->apart) down = 1, wanted = smaller(wanted, threads);
    if (job->direct) down = larger(down, smaller(wanted, parts_of(p->m, e->rows)));
    if (down > threads && down < 4 * threads) down = parts_of(down, threads) * threads;
    if (!job->apart && 4 * p->m >= job->columns) down = larger(down, smaller(smaller(threads, worth), p->m / e->rows));
    if (down < threads) across = larger(smaller(wanted / down, job->columns / (2 * e->columns)), 1);
    job->part_rows = block_of(p->m, parts_of(p->m, down), e->least_rows);
    job->part_columns = block_of(job->columns, parts_of(job->columns, across), e->columns);
}

bool multiply_packed(const struct product *result, const struct engine *e) {
    if (result->m == 0 || result->n == 0) return true;
    struct product other = turned(result);
    struct job job = {.product = result, .result = result, .with = e};
    /* the right factor's rows are transposed when packed, which costs as much as some products, and tiles turned as some */
    job.turned = e->direct && result->b_row == 1 && 4 * result->m * result->n < (result->n - result->m) * result->k;
    if (job.turned) job.product = &other;
    const struct product *p = job.product;
    ssize_t apart = depth_apart(p, e);
    job.apart = apart > 0;
    job.depth = p->k ? block_of(p->k, apart ? apart : e->depth, e->unit) : e->unit;
    job.stretch = block_of(job.depth, e->stretch, e->unit);
    job.direct = e->direct && p->a_row != 0 && p->a_column == 1 && p->n <= FEW_PANELS * e->columns;
    ssize_t right_panel = size_times(parts_of(p->k, e->unit), e->right_bytes);
    ssize_t columns = smaller(p->n, (RIGHT_BYTES / (right_panel + 1) + 1) * e->columns);
    job.columns = columns;
    cut(&job);
    ssize_t down = parts_of(p->m, job.part_rows), size = size_times(parts_of(columns, e->columns), right_panel);
    if (p->k && (down > 2 || (down == 2 && size > OWN_BYTES))) {
        job.right = allocate_items(size, 1);
        if (!job.right) return false;
    }
    for (; job.first < p->n; job.first += columns) {
        job.columns = smaller(columns, p->n - job.first);
        if (job.right && p->b_column == 1 && p->b_row != 1)
            parallel_for(parts_of(p->k, SLAB), grain_for(job.columns * SLAB / 8), pack_slabs, &job);
        else if (job.right)
            parallel_for(parts_of(job.columns, e->columns), grain_for(p->k * e->columns / 8), pack_panels, &job);
        parallel_for(parts_of(p->m, job.part_rows) * parts_of(job.columns, job.part_columns), 1, multiply_parts, &job);
    }
    release(job.right);
    return job.untrue ? e->otherwise(result) : !job.failed;
}
