/* Arrays extended at their borders, by a value or by elements of their own, or cut there; and the gradients of the latter. */
#include "kernels.h"
#include "core/memory.h"
#include "core/sizes.h"
#include "core/strided.h"
#include "core/threads.h"
#include "core/widening.h"

#include <stdatomic.h>
#include <string.h>

enum mode { CONSTANT, REFLECT, REPLICATE, CIRCULAR }; /* as in padding.py */

/* A padded dimension: its places inner to outer stand for the elements first to stop in order, the others for `position`. */
struct edge {
    ssize_t size, padded, before, first, stop, inner, outer;
};

static ssize_t within(ssize_t x, ssize_t low, ssize_t high) { return x < low ? low : x > high ? high : x; }

/* Find the edges of a dimension; false if a place would stand for no element. */
static bool find_edge(ssize_t size, ssize_t padded, ssize_t before, enum mode mode, struct edge *edge) {
    if (before < -LARGEST_EXTENT || before > LARGEST_EXTENT) return false;
    ssize_t after = padded - size - before;
    struct edge e = {size, padded, before, before < 0 ? -before : 0, after < 0 ? size + after : size, 0, 0};
    e.inner = within(before + e.first, 0, padded), e.outer = within(before + e.stop, e.inner, padded);
    *edge = e;
    switch (mode) {
    case REFLECT: return padded == 0 || (before < size && after < size);
    case REPLICATE: return padded == 0 || size > 0;
    case CIRCULAR: return padded == 0 || e.first < e.stop;
    default: return true;
    }
}

/* The element for which a place stands; negative if there is none. */
static inline ssize_t position(const struct edge *e, enum mode mode, ssize_t place) {
    ssize_t at = place - e->before, period = e->stop - e->first;
    if (at >= e->first && at < e->stop) return at;
    switch (mode) {
    case REFLECT: return at < 0 ? -at : 2 * (e->size - 1) - at;
    case REPLICATE: return at < 0 ? 0 : e->size - 1;
    case CIRCULAR: return e->first + ((at - e->first) % period + period) % period;
    default: return -1;
    }
}

/* Rows of the last dimension. */
struct job {
    array x, y; /* the smaller and the padded array */
    enum mode mode;
    const char *value;        /* a constant */
    struct edge edges[MAX_DIMS];
    ssize_t *positions;       /* those of the last dimension's places beyond inner to outer */
    atomic_bool no_memory;
};

/* Fill in what follows from the arrays. What OK is returned for has positions to be released. */
static enum status open_job(struct job *job, array x, array y, const intptr_t *before, enum mode mode) {
    int last = y->ndim - 1;
    if (mode < CONSTANT || mode > CIRCULAR) return UNSUPPORTED;
    if (last < 0 || x->ndim != y->ndim) return WRONG_SHAPE;
    job->x = x, job->y = y, job->mode = mode, job->positions = NULL, job->no_memory = false;
    for (int i = 0; i <= last; i++)
        if (!find_edge(x->shape[i], y->shape[i], before[i], mode, job->edges + i)) return WRONG_SHAPE;
    const struct edge *e = job->edges + last;
    if (mode == CONSTANT) return OK;
    job->positions = allocate_items(e->inner + e->padded - e->outer, sizeof(ssize_t));
    if (!job->positions) return NO_MEMORY;
    for (ssize_t i = 0; i < e->inner; i++) job->positions[i] = position(e, mode, i);
    for (ssize_t i = e->outer; i < e->padded; i++) job->positions[e->inner + i - e->outer] = position(e, mode, i);
    return OK;
}

/* -- padding -- */
#define TEMPLATE "data_movement/padding.inc"
#include "core/each_size.h"

typedef void (*rows_function)(const struct job *job, const char *plane, ssize_t begin, ssize_t end, char *target);
static const rows_function pad_rows_of_size[] = {
    [1] = pad_rows_1, [2] = pad_rows_2, [4] = pad_rows_4, [8] = pad_rows_8, [16] = pad_rows_16};

static void pad_rows(void *context, ssize_t begin, ssize_t end) {
    const struct job *job = context;
    array x = job->x, y = job->y;
    int down = y->ndim - 2;
    ssize_t rows = down < 0 ? 1 : y->shape[down], size = (ssize_t)size_of(dtype_of(y)), row = y->shape[down + 1] * size;
    for (ssize_t stop; begin < end; begin = stop) {
        ssize_t plane = begin / rows;
        const char *source = x->data;
        for (int i = down - 1; i >= 0; plane /= y->shape[i--]) {
            ssize_t at = position(job->edges + i, job->mode, plane % y->shape[i]);
            source = at < 0 || !source ? NULL : source + at * x->strides[i];
        }
        stop = (begin / rows + 1) * rows < end ? (begin / rows + 1) * rows : end;
        pad_rows_of_size[size](job, source, begin % rows, (stop - 1) % rows + 1, y->data + begin * row);
    }
}

static enum status pad(struct job *job) {
    array y = job->y;
    ssize_t n = y->shape[y->ndim - 1], count = count_of(y);
    if (count) parallel_for(count / n, vector_grain_for(n * (ssize_t)size_of(dtype_of(y)) / 16 + 16), pad_rows, job);
    release(job->positions);
    return OK;
}

int constant_pad(uintptr_t input, const intptr_t *before, uintptr_t value, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    struct job job;
    array x = ARRAY(input), y = ARRAY(output), v = ARRAY(value);
    if (dtype_of(y) == NO_DTYPE || dtype_of(x) != dtype_of(y) || dtype_of(v) != dtype_of(y)) return WRONG_DTYPE;
    if (v->ndim || !is_contiguous(y)) return WRONG_SHAPE;
    enum status status = open_job(&job, x, y, before, CONSTANT);
    job.value = v->data;
    return status ? status : pad(&job);
}

int indexed_pad(uintptr_t input, const intptr_t *before, int mode, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    struct job job;
    array x = ARRAY(input), y = ARRAY(output);
    if (dtype_of(y) == NO_DTYPE || dtype_of(x) != dtype_of(y)) return WRONG_DTYPE;
    if (mode == CONSTANT || !is_contiguous(y)) return WRONG_SHAPE;
    enum status status = open_job(&job, x, y, before, (enum mode)mode);
    return status ? status : pad(&job);
}

/* -- gradients: each row of the smaller array is the sum of the padded rows that stand for it, from the first one on -- */
/* What a thread adds up. */
struct sum {
    const struct job *job;
    struct half half;
    const ssize_t *at; /* the row's coordinates */
    void *row, *wide;  /* its elements, and those of a half type that are added to it */
};

#define TEMPLATE "data_movement/padding_gradient.inc"
#include "core/each_real.h"

int indexed_pad_gradient(uintptr_t grad, const intptr_t *before, int mode, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    struct job job;
    array x = ARRAY(output), y = ARRAY(grad);
    enum dtype dtype = computed_in(dtype_of(x));
    if (dtype_of(y) != dtype_of(x) || (dtype != FLOAT32 && dtype != FLOAT64)) return WRONG_DTYPE;
    if (mode == CONSTANT || !is_contiguous(x) || !is_contiguous(y)) return WRONG_SHAPE;
    enum status status = open_job(&job, x, y, before, (enum mode)mode);
    if (status) return status;
    ssize_t n = x->shape[x->ndim - 1], count = count_of(x);
    if (count)
        parallel_for(count / n, vector_grain_for(n / 2 + 16), dtype == FLOAT32 ? add_rows_f32 : add_rows_f64, &job);
    release(job.positions);
    return job.no_memory ? NO_MEMORY : OK;
}
