/* Single elements at positions along one dimension: gathered, scattered, and combined where they meet.
 *
 * Three arrays take part: the table, whose dimension `dim` the positions count, the index, and the other side, which
 * covers the index. The work is done by rows of the index, along whichever of its last two dimensions is long. */
#include "kernels.h"
#include "indexing/positions.h"
#include "core/strided.h"
#include "core/threads.h"

#include <stdatomic.h>
#include <string.h>

/* Element j: position at[j] of the table's dimension `dim`; all steps in bytes. */
struct row {
    ssize_t n;
    const char *at;
    char *table, *other;
    ssize_t at_step, table_step, other_step;
    ssize_t along; /* bytes between neighbours in the table's dimension `dim` */
    ssize_t size;  /* of that dimension */
};
typedef bool (*row_task)(const struct row *row); /* false if a position is outside; then what comes after is left */

struct elements {
    array table, index;
    char *other;
    ssize_t other_strides[MAX_DIMS];
    int dim, long_dim; /* the positions' and the rows' dimension, maybe the same */
    ssize_t chunk, chunks;
    row_task task;
    atomic_bool outside;
};

static enum status set_up(array table, int dim, array index, array other, struct elements *e) {
    int ndim = index->ndim, last = ndim - 1;
    bool scalar = other->ndim == 0;
    if (dtype_of(index) != INT64 || dtype_of(table) != dtype_of(other) || dtype_of(table) == NO_DTYPE)
        return WRONG_DTYPE;
    if (dim < 0 || dim >= ndim || table->ndim != ndim || (!scalar && other->ndim != ndim)) return WRONG_SHAPE;
    if (overlap(table, other) || overlap(table, index)) return UNSUPPORTED;
    for (int i = 0; i < ndim; i++) {
        if (i != dim && index->shape[i] > table->shape[i]) return WRONG_SHAPE;
        if (!scalar && index->shape[i] > other->shape[i]) return WRONG_SHAPE;
        e->other_strides[i] = scalar ? 0 : other->strides[i];
    }
    bool narrow = last > 0 && index->shape[last] < 16 && index->shape[last - 1] > index->shape[last];
    e->table = table, e->index = index, e->other = other->data, e->dim = dim, e->long_dim = narrow ? last - 1 : last;
    e->outside = false;
    return OK;
}

static void run_rows(void *context, ssize_t begin, ssize_t end) {
    struct elements *e = context;
    array x = e->table, index = e->index;
    int dim = e->dim, along = e->long_dim;
    ssize_t repetitions = dim == along ? 1 : index->shape[dim];
    struct row row = {.at_step = index->strides[along],
                      .table_step = dim == along ? 0 : x->strides[along],
                      .other_step = e->other_strides[along],
                      .along = x->strides[dim],
                      .size = x->shape[dim]};
    for (ssize_t item = begin; item < end; item++) {
        ssize_t start = item % e->chunks * e->chunk, left = item / e->chunks;
        const char *at = index->data + start * row.at_step;
        char *table = x->data + start * row.table_step, *other = e->other + start * row.other_step;
        for (int i = index->ndim - 1; i >= 0; i--) {
            if (i == dim || i == along) continue;
            ssize_t place = left % index->shape[i];
            left /= index->shape[i];
            at += place * index->strides[i], table += place * x->strides[i], other += place * e->other_strides[i];
        }
        row.n = index->shape[along] - start < e->chunk ? index->shape[along] - start : e->chunk;
        for (ssize_t i = 0; i < repetitions; i++) {
            row.at = at + i * index->strides[dim];
            row.table = table;
            row.other = other + i * e->other_strides[dim];
            if (!e->task(&row)) {
                e->outside = true;
                return;
            }
        }
    }
}

/* Run the task. Rows along `dim` are cut only if `apart`: if it does not matter who comes first at a position. */
static enum status run(struct elements *e, row_task task, bool apart) {
    enum { ALONG = 1 << 14, CACHED = 1 << 18, NARROW = 32 }; /* elements; bytes of columns cached together; elements */
    ssize_t items = 1, n = e->index->shape[e->long_dim], each = e->dim == e->long_dim ? 1 : e->index->shape[e->dim];
    for (int i = 0; i < e->index->ndim; i++) {
        if (e->index->shape[i] == 0) return OK;
        if (i != e->dim && i != e->long_dim) items *= e->index->shape[i];
    }
    ssize_t across = CACHED / (e->table->shape[e->dim] * (ssize_t)size_of(dtype_of(e->table)) + 1);
    e->chunk = e->dim != e->long_dim ? (across < NARROW ? NARROW : across) : apart ? ALONG : n;
    e->chunks = (n + e->chunk - 1) / e->chunk;
    e->task = task;
    parallel_for(items * e->chunks, grain_for((n < e->chunk ? n : e->chunk) * each * 4), run_rows, e);
    return e->outside ? OUT_OF_RANGE : OK;
}

/* What is done with the elements of a row, one by one; inlined together with its `mode`. */
typedef bool (*row_loop)(struct row row, int mode);

/* Run a loop with the steps of a row replaced by constants where they are the usual ones, for the compiler to see: rows
 * along the positions' dimension, and across it. */
static inline __attribute__((always_inline)) bool with_known_steps(struct row row, ssize_t size, row_loop loop,
                                                                   int mode) {
    if (row.at_step == sizeof(int64_t) && row.other_step == size) {
        row.at_step = sizeof(int64_t), row.other_step = size;
        if (row.table_step == 0 && row.along == size) {
            row.table_step = 0, row.along = size;
            return loop(row, mode);
        }
        if (row.table_step == size) {
            row.table_step = size;
            return loop(row, mode);
        }
    }
    return loop(row, mode);
}

#define TEMPLATE "elementwise/elements.inc"
#include "core/each_size.h"

static const row_task gather_of_size[] = {
    [1] = gather_1, [2] = gather_2, [4] = gather_4, [8] = gather_8, [16] = gather_16};
static const row_task scatter_of_size[] = {
    [1] = scatter_1, [2] = scatter_2, [4] = scatter_4, [8] = scatter_8, [16] = scatter_16};

int gather(uintptr_t input, int dim, uintptr_t index, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    struct elements e;
    if (!same_shape(ARRAY(index), ARRAY(output))) return WRONG_SHAPE;
    enum status status = set_up(ARRAY(input), dim, ARRAY(index), ARRAY(output), &e);
    if (status) return status;
    return run(&e, gather_of_size[size_of(dtype_of(e.table))], true);
}

int scatter(uintptr_t target, int dim, uintptr_t index, uintptr_t source) {
    if (!WRITABLE(target)) return READ_ONLY;
    struct elements e;
    enum status status = set_up(ARRAY(target), dim, ARRAY(index), ARRAY(source), &e);
    if (status) return status;
    return run(&e, scatter_of_size[size_of(dtype_of(e.table))], false);
}

enum combination { TOTAL, MULTIPLIED, LARGEST, SMALLEST }; /* as in scattering.py */
#define TEMPLATE "reduction/combine.inc"
#include "core/each_number.h"

int scatter_combine(uintptr_t target, int dim, uintptr_t index, uintptr_t source, int reduction) {
    if (!WRITABLE(target)) return READ_ONLY;
    static const row_task *const tasks[NO_DTYPE] = {
        [BOOL] = combine_b8,   [UINT8] = combine_u8,  [INT8] = combine_i8,     [INT16] = combine_i16,
        [INT32] = combine_i32, [INT64] = combine_i64, [FLOAT32] = combine_f32, [FLOAT64] = combine_f64,
    };
    struct elements e;
    if (reduction < TOTAL || reduction > SMALLEST) return UNSUPPORTED;
    enum status status = set_up(ARRAY(target), dim, ARRAY(index), ARRAY(source), &e);
    if (status) return status;
    if (!tasks[dtype_of(e.table)]) return WRONG_DTYPE;
    return run(&e, tasks[dtype_of(e.table)][reduction], false);
}
