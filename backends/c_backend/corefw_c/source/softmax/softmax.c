/* softmax, its logarithm and their gradients, along one dimension. */
#include "core/array.h"
#include "kernels.h"
#include "core/lanes.h"
#include "core/memory.h"
#include "core/threads.h"
#include "core/widening.h"

#include <stdatomic.h>

enum { BUNDLE = 8, BUNDLED = 4096 }; /* the most rows of a bundle, and their elements */

#define TEMPLATE "reduction/row_sums.inc"
#include "core/each_real.h"
#define TEMPLATE "core/exponentials.inc"
#include "core/each_real.h"
#define TEMPLATE "softmax/softmax.inc"
#include "core/each_real.h"

/* -- half types: rows and panels as floats -- */
struct half_job {
    struct half half;
    ssize_t n, inner;
    const uint16_t *a, *b;
    uint16_t *y;
    range_task task; /* of floats */
    atomic_bool no_memory;
};

/* Bundles of rows, or panels. */
static void half_range(void *context, ssize_t begin, ssize_t end) {
    enum { PANEL = 4 * LANES_f32 };
    struct half_job *job = context;
    ssize_t n = job->n, inner = job->inner, panels = (inner + PANEL - 1) / PANEL;
    ssize_t most = inner > 1 ? PANEL : n <= BUNDLED / BUNDLE ? BUNDLE : n <= BUNDLED ? BUNDLED / n : 1;
    float *a = allocate_items(3 * most, (size_t)n * sizeof *a), *b = a + most * n, *y = b + most * n;
    if (!a) {
        job->no_memory = true;
        return;
    }
    for (ssize_t item = begin, count; item < end; item += count) {
        count = inner > 1 ? 1 : end - item < most ? end - item : most;
        ssize_t column = inner > 1 ? item % panels * PANEL : 0, rows = inner > 1 ? n : count;
        ssize_t width = inner == 1 ? n : inner - column < PANEL ? inner - column : PANEL, apart = inner > 1 ? inner : n;
        ssize_t at = inner > 1 ? item / panels * n * inner + column : item * n;
        struct softmax_job_f32 part = {n, inner > 1 ? width : 1, a, b, y};
        widen_rows(job->half, rows, width, job->a + at, apart, a);
        if (job->b != job->a) widen_rows(job->half, rows, width, job->b + at, apart, b);
        job->task(&part, 0, count);
        narrow_rows(job->half, rows, width, y, job->y + at, apart);
    }
    release(a);
}

static int over_half_slices(ssize_t outer, ssize_t n, ssize_t inner, array a, array b, array y, range_task task) {
    enum { PANEL = 4 * LANES_f32 };
    struct half_job job = {half_of(dtype_of(y)), n, inner, (const uint16_t *)a->data, (const uint16_t *)b->data,
                           (uint16_t *)y->data, task, false};
    ssize_t panels = inner == 1 ? 1 : (inner + PANEL - 1) / PANEL, width = inner < PANEL ? inner : PANEL;
    parallel_for(outer * panels, grain_for(4 * n * width), half_range, &job);
    return job.no_memory ? NO_MEMORY : OK;
}

/* Apply the range for the dtype to slices along `dim` of contiguous arrays of one shape. */
static int apply(array a, array b, int dim, array y, range_task of_f32, range_task of_f64) {
    if (dim < 0 || dim >= (a->ndim ? a->ndim : 1) || !same_shape(a, y) || !same_shape(b, y)) return WRONG_SHAPE;
    if (!is_contiguous(a) || !is_contiguous(b) || !is_contiguous(y)) return WRONG_SHAPE;
    enum dtype dtype = dtype_of(y);
    if (dtype_of(a) != dtype || dtype_of(b) != dtype) return WRONG_DTYPE;
    if (count_of(y) == 0) return OK;
    ssize_t outer = 1, n = y->ndim ? y->shape[dim] : 1, inner = 1;
    for (int i = 0; i < dim; i++) outer *= y->shape[i];
    for (int i = dim + 1; i < y->ndim; i++) inner *= y->shape[i];
    switch (dtype) {
    case FLOAT32: over_slices_f32(outer, n, inner, a->data, b->data, y->data, of_f32); return OK;
    case FLOAT64: over_slices_f64(outer, n, inner, a->data, b->data, y->data, of_f64); return OK;
    case FLOAT16:
    case BFLOAT16: return over_half_slices(outer, n, inner, a, b, y, of_f32);
    default: return WRONG_DTYPE;
    }
}

int softmax(uintptr_t input, int dim, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    return apply(ARRAY(input), ARRAY(input), dim, ARRAY(output), softmax_range_f32, softmax_range_f64);
}

int log_softmax(uintptr_t input, int dim, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    return apply(ARRAY(input), ARRAY(input), dim, ARRAY(output), log_softmax_range_f32, log_softmax_range_f64);
}

int softmax_backward(uintptr_t grad, uintptr_t output, int dim, uintptr_t result) {
    if (!WRITABLE(result)) return READ_ONLY;
    return apply(ARRAY(grad), ARRAY(output), dim, ARRAY(result), softmax_backward_range_f32,
                 softmax_backward_range_f64);
}

int log_softmax_backward(uintptr_t grad, uintptr_t output, int dim, uintptr_t result) {
    if (!WRITABLE(result)) return READ_ONLY;
    return apply(ARRAY(grad), ARRAY(output), dim, ARRAY(result), log_softmax_backward_range_f32,
                 log_softmax_backward_range_f64);
}
