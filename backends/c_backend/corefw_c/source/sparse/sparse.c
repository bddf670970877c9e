/* Products of sparse matrices in compressed rows (CSR) with dense ones.
 *
 * Of the entries of row r of the sparse matrix, from crow[r] to crow[r + 1] - 1, entry e stands in column col[e]. */
#include "core/array.h"
#include "kernels.h"
#include "core/lanes.h"
#include "core/memory.h"
#include "core/storage.h"
#include "core/threads.h"
#include "core/widening.h"
#include "indexing/positions.h"

#include <stdatomic.h>
#include <string.h>

enum { STRIP_BYTES = 64 }; /* of a row of sums that one thread writes to, where threads share the columns: a cache line */

struct sparse_job {
    ssize_t rows, columns, entries; /* of the sparse matrix */
    ssize_t n;                      /* columns of the dense matrices */
    const char *values, *left, *right;
    const int64_t *crow, *col;
    char *output;
    atomic_bool outside; /* whether a position was */
    atomic_bool no_memory;
};

/* Where the entries of a row begin and how many there are; none, and a note, if they lie outside of those that exist. */
static ssize_t find_row(struct sparse_job *job, ssize_t row, ssize_t *begin) {
    int64_t from = position_at(job->crow, row), to = position_at(job->crow, row + 1);
    if (from < 0 || to < from || to > job->entries) {
        job->outside = true;
        return 0;
    }
    *begin = from;
    return to - from;
}

/* The column of an entry; the first one, and a note, if it is none of the matrix. */
static inline ssize_t find_column(struct sparse_job *job, ssize_t entry) {
    int64_t column = position_at(job->col, entry);
    if (is_within(column, job->columns)) return column;
    job->outside = true;
    return 0;
}

#define TEMPLATE "sparse/sparse.inc"
#include "core/each_storage.h"

/* The tasks for each type of elements. */
#define TASKS(name) {[FLOAT16] = name##_f16, [BFLOAT16] = name##_bf16, [FLOAT32] = name##_f32, [FLOAT64] = name##_f64}
static const range_task multiply_rows[NO_DTYPE + 1] = TASKS(multiply_rows);
static const range_task scatter_strips[NO_DTYPE + 1] = TASKS(scatter_strips);
static const range_task sample_rows[NO_DTYPE + 1] = TASKS(sample_rows);

/* Whether an array is a contiguous one of these sizes; the second is -1 for a vector. */
static bool is_of(array a, ssize_t first, ssize_t second) {
    return a->ndim == (second < 0 ? 1 : 2) && a->shape[0] == first && (second < 0 || a->shape[1] == second) &&
           is_contiguous(a);
}

/* Read the positions and the sizes of a sparse matrix with this many columns. */
static enum status read_pattern(array crow, array col, ssize_t columns, struct sparse_job *job) {
    if (dtype_of(crow) != INT64 || dtype_of(col) != INT64) return WRONG_DTYPE;
    if (crow->ndim != 1 || col->ndim != 1 || crow->shape[0] < 1 || !is_contiguous(crow) || !is_contiguous(col))
        return WRONG_SHAPE;
    job->crow = (const int64_t *)crow->data, job->col = (const int64_t *)col->data;
    job->rows = crow->shape[0] - 1, job->columns = columns, job->entries = col->shape[0];
    atomic_init(&job->outside, false);
    atomic_init(&job->no_memory, false);
    return OK;
}

/* Whether rows leave entries out, or there are entries in a matrix without columns. */
static bool is_impossible(const struct sparse_job *job) {
    if (position_at(job->crow, 0) != 0 || position_at(job->crow, job->rows) != job->entries) return true;
    return job->entries && !job->columns;
}

static enum status finish(struct sparse_job *job) {
    return atomic_load(&job->no_memory) ? NO_MEMORY : atomic_load(&job->outside) ? OUT_OF_RANGE : OK;
}

static enum dtype common_dtype(array a, array b, array c) {
    enum dtype dtype = dtype_of(a);
    return multiply_rows[dtype] && dtype_of(b) == dtype && dtype_of(c) == dtype ? dtype : NO_DTYPE;
}

static ssize_t entries_per_row(const struct sparse_job *job) { return job->entries / (job->rows + 1) + 1; }

int csr_matmul(uintptr_t values, uintptr_t other, uintptr_t crow, uintptr_t col, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    array v = ARRAY(values), x = ARRAY(other), y = ARRAY(output);
    enum dtype dtype = common_dtype(v, x, y);
    if (dtype == NO_DTYPE) return WRONG_DTYPE;
    if (x->ndim != 2 || !is_contiguous(x)) return WRONG_SHAPE;
    struct sparse_job job = {.n = x->shape[1], .values = v->data, .right = x->data, .output = y->data};
    enum status status = read_pattern(ARRAY(crow), ARRAY(col), x->shape[0], &job);
    if (status) return status;
    if (!is_of(v, job.entries, -1) || !is_of(y, job.rows, job.n)) return WRONG_SHAPE;
    if (is_impossible(&job)) return OUT_OF_RANGE;
    parallel_for(job.rows, grain_for(8 + entries_per_row(&job) * (4 + job.n / 4)), multiply_rows[dtype], &job);
    return finish(&job);
}

int csr_transposed_matmul(uintptr_t values, uintptr_t other, uintptr_t crow, uintptr_t col, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    array v = ARRAY(values), x = ARRAY(other), y = ARRAY(output);
    enum dtype dtype = common_dtype(v, x, y);
    if (dtype == NO_DTYPE) return WRONG_DTYPE;
    if (x->ndim != 2 || y->ndim != 2 || !is_contiguous(x)) return WRONG_SHAPE;
    struct sparse_job job = {.n = x->shape[1], .values = v->data, .right = x->data, .output = y->data};
    enum status status = read_pattern(ARRAY(crow), ARRAY(col), y->shape[0], &job);
    if (status) return status;
    if (!is_of(v, job.entries, -1) || x->shape[0] != job.rows || !is_of(y, job.columns, job.n)) return WRONG_SHAPE;
    if (is_impossible(&job)) return OUT_OF_RANGE;
    ssize_t strip = STRIP_BYTES / (ssize_t)size_of(computed_in(dtype)), strips = (job.n + strip - 1) / strip;
    parallel_for(strips, grain_for(job.columns + job.entries * (4 + strip / 4)), scatter_strips[dtype], &job);
    return finish(&job);
}

int csr_sampled_matmul(uintptr_t left, uintptr_t right, uintptr_t crow, uintptr_t col, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    array a = ARRAY(left), b = ARRAY(right), y = ARRAY(output);
    enum dtype dtype = common_dtype(a, b, y);
    if (dtype == NO_DTYPE) return WRONG_DTYPE;
    if (a->ndim != 2 || b->ndim != 2 || !is_contiguous(a) || !is_contiguous(b)) return WRONG_SHAPE;
    struct sparse_job job = {.n = a->shape[1], .left = a->data, .right = b->data, .output = y->data};
    enum status status = read_pattern(ARRAY(crow), ARRAY(col), b->shape[0], &job);
    if (status) return status;
    if (a->shape[0] != job.rows || b->shape[1] != job.n || !is_of(y, job.entries, -1)) return WRONG_SHAPE;
    if (is_impossible(&job)) return OUT_OF_RANGE;
    parallel_for(job.rows, grain_for(8 + entries_per_row(&job) * (4 + job.n / 4)), sample_rows[dtype], &job);
    return finish(&job);
}
