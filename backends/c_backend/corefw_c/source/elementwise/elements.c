/* Single elements at positions along one dimension: gathered, scattered, and combined where they meet.
 *
 * Three arrays take part: the table, whose dimension `dim` the positions count, the index, and the other side, which
 * covers the index. The work is done by rows of the index, along whichever of its last two dimensions is long. */
#include "kernels.h"
#include "indexing/positions.h"
#include "core/memory.h"
#include "core/sizes.h"
#include "core/strided.h"
#include "core/threads.h"
#include "core/widening.h"

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
    struct half half; /* of half types that are combined in float */
    atomic_bool outside, no_memory;
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
    e->half = (struct half){NULL, NULL};
    e->outside = e->no_memory = false;
    return OK;
}

/* `n` halves, `step` bytes apart, as floats; and back. */
static void widen_strided(struct half half, ssize_t n, const char *from, ssize_t step, uint16_t *halves, float *to) {
    if (step != sizeof *halves) copy_row(n, (char *)halves, sizeof *halves, from, step, sizeof *halves);
    half.widen(n, step == sizeof *halves ? from : (const char *)halves, to);
}

static void narrow_strided(struct half half, ssize_t n, const float *from, uint16_t *halves, char *to, ssize_t step) {
    half.narrow(n, from, step == sizeof *halves ? to : (char *)halves);
    if (step != sizeof *halves) copy_row(n, to, step, (const char *)halves, sizeof *halves, sizeof *halves);
}

/* The floats that `combine_halves` has room for. */
static ssize_t floats_of(const struct elements *e) {
    ssize_t size = e->table->shape[e->dim], n = e->index->shape[e->long_dim], most = n < e->chunk ? n : e->chunk;
    ssize_t lines = e->dim == e->long_dim ? size : size_times(size, most);
    return size_plus(lines, size_plus(most, size > most ? size : most));
}

/* Combine half types with rows of which each one's elements lie `other_step` bytes and its positions `at_step` bytes
 * behind those of the row before it: what the table's dimension holds for all columns of the rows is float until the
 * last one. */
static bool combine_halves(struct elements *e, struct row row, ssize_t rows, ssize_t at_step, ssize_t other_step,
                           float *floats) {
    bool across = e->dim != e->long_dim;
    ssize_t lines = across ? row.size : 1, width = across ? row.n : row.size, others = row.other_step ? row.n : 1;
    ssize_t line_step = across ? row.along : 0, step = across ? row.table_step : row.along;
    float *values = floats + lines * width;
    uint16_t *halves = (uint16_t *)(values + others);
    struct row wide = {.n = row.n, .table = (char *)floats, .other = (char *)values, .at_step = row.at_step,
                       .table_step = across ? sizeof *floats : 0, .other_step = row.other_step ? sizeof *values : 0,
                       .along = (across ? width : 1) * (ssize_t)sizeof *floats, .size = row.size};
    for (ssize_t i = 0; i < lines; i++)
        widen_strided(e->half, width, row.table + i * line_step, step, halves, floats + i * width);
    for (ssize_t i = 0; i < rows; i++) {
        widen_strided(e->half, others, row.other + i * other_step, row.other_step ? row.other_step : 2, halves, values);
        wide.at = row.at + i * at_step;
        if (!e->task(&wide)) return false;
    }
    for (ssize_t i = 0; i < lines; i++)
        narrow_strided(e->half, width, floats + i * width, halves, row.table + i * line_step, step);
    return true;
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
    float *floats = e->half.widen ? allocate_items(floats_of(e), sizeof *floats) : NULL;
    if (e->half.widen && !floats) {
        e->no_memory = true;
        return;
    }
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
        if (floats) {
            row.at = at, row.table = table, row.other = other;
            if (combine_halves(e, row, repetitions, index->strides[dim], e->other_strides[dim], floats)) continue;
            e->outside = true;
            break;
        }
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
    release(floats);
}

/* Run the task. Rows along `dim` are cut only if `apart`: if it does not matter who comes first at a position. */
static enum status run(struct elements *e, row_task task, bool apart) {
    enum { ALONG = 1 << 14, CACHED = 1 << 18, NARROW = 32 }; /* elements; bytes of columns cached together; elements */
    ssize_t items = 1, n = e->index->shape[e->long_dim], each = e->dim == e->long_dim ? 1 : e->index->shape[e->dim];
    for (int i = 0; i < e->index->ndim; i++) {
        if (e->index->shape[i] == 0) return OK;
        if (i != e->dim && i != e->long_dim) items *= e->index->shape[i];
    }
    ssize_t size = (ssize_t)(e->half.widen ? sizeof(float) : size_of(dtype_of(e->table)));
    ssize_t across = CACHED / (e->table->shape[e->dim] * size + 1);
    e->chunk = e->dim != e->long_dim ? (across < NARROW ? NARROW : across) : apart ? ALONG : n;
    e->chunks = (n + e->chunk - 1) / e->chunk;
    e->task = task;
    parallel_for(items * e->chunks, grain_for((n < e->chunk ? n : e->chunk) * each * 4), run_rows, e);
    return e->outside ? OUT_OF_RANGE : e->no_memory ? NO_MEMORY : OK;
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
    enum dtype dtype = dtype_of(e.table);
    e.half = half_of(dtype);
    if (!tasks[computed_in(dtype)]) return WRONG_DTYPE;
    return run(&e, tasks[computed_in(dtype)][reduction], false);
}
