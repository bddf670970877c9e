/* Pooling by the maximum. */
#include "kernels.h"
#include "core/memory.h"
#include "core/sizes.h"
#include "indexing/positions.h"
#include "core/threads.h"
#include "core/widening.h"
#include "pooling/windows.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum { MOST_PLACES = 256, MOST_TAPS = 32, MOST_PAIRS = MOST_PLACES + MOST_TAPS };

/* Places in a plane, as wide as the elements, so that both are compared and chosen alike. */
typedef int32_t place_f32;
typedef int64_t place_f64;

struct max_job {
    const struct pooling *pooling;
    const char *x;
    char *values;
    int64_t *indices;
    int pattern;         /* rows, columns and stride as digits, of windows that have a loop of their own; else 0 */
    struct range *taps;  /* of sliding windows: those of a row whose tap lies inside, for each tap */
};

struct scatter_job {
    const char *grad;
    const int64_t *indices;
    char *out;
    ssize_t count, size; /* of a plane of the gradient and of the result */
    atomic_bool out_of_range;
};

/* The windows of a row whose tap t lies inside. */
static struct range windows_with_tap(const struct windows *w, ssize_t t) {
    ssize_t offset = t * w->step - w->padding; /* the place of the tap of window 0 */
    ssize_t begin = offset < 0 ? (-offset + w->stride - 1) / w->stride : 0;
    ssize_t end = offset < w->size ? (w->size - offset + w->stride - 1) / w->stride : 0;
    return (struct range){begin, end < w->count ? end : w->count};
}

#define TEMPLATE "pooling/pooling_max.inc"
#include "core/each_real.h"

/* -- half types: planes as floats -- */
struct half_planes {
    struct half half;
    struct max_job max;
    struct scatter_job scatter;
    ssize_t rows; /* of the result of a plane */
    atomic_bool no_memory;
};

static void max_half_planes(void *context, ssize_t begin, ssize_t end) {
    struct half_planes *job = context;
    ssize_t size = plane_size(job->max.pooling), count = plane_count(job->max.pooling);
    float *x = allocate_items(size_plus(size, count), sizeof *x), *values = x + size;
    if (!x) {
        job->no_memory = true;
        return;
    }
    for (ssize_t plane = begin; plane < end; plane++) {
        struct max_job part = job->max;
        job->half.widen(size, job->max.x + 2 * plane * size, x);
        part.x = (const char *)x, part.values = (char *)values, part.indices += plane * count;
        max_rows_f32(&part, 0, job->rows);
        job->half.narrow(count, values, job->max.values + 2 * plane * count);
    }
    release(x);
}

static void add_half_planes(void *context, ssize_t begin, ssize_t end) {
    struct half_planes *job = context;
    ssize_t size = job->scatter.size, count = job->scatter.count;
    float *grad = allocate_items(size_plus(size, count), sizeof *grad), *out = grad + count;
    if (!grad) {
        job->no_memory = true;
        return;
    }
    for (ssize_t plane = begin; plane < end; plane++) {
        struct scatter_job part = {.grad = (const char *)grad, .indices = job->scatter.indices + plane * count,
                                   .out = (char *)out, .count = count, .size = size};
        job->half.widen(count, job->scatter.grad + 2 * plane * count, grad);
        add_to_maxima_f32(&part, 0, 1);
        if (atomic_load(&part.out_of_range)) {
            atomic_store(&job->scatter.out_of_range, true);
            break;
        }
        job->half.narrow(size, out, job->scatter.out + 2 * plane * size);
    }
    release(grad);
}

/* The pattern of sliding windows in the last two dimensions. */
static int pattern_of(const struct pooling *p) {
    const struct windows *d = p->dim, *h = p->dim + 1, *w = p->dim + 2;
    if (d->size != 1 || d->count != 1 || d->kernel != 1 || h->step != 1 || w->step != 1 || !w->stride) return 0;
    int pattern = h->kernel < 4 && w->kernel < 4 && w->stride < 4 ? (int)(100 * h->kernel + 10 * w->kernel + w->stride) : 0;
    return pattern == 122 || pattern == 222 || pattern == 331 ? pattern : 0;
}

int max_pool(uintptr_t input, uintptr_t options, uintptr_t values, uintptr_t indices) {
    if (!WRITABLE(values, indices)) return READ_ONLY;
    array x = ARRAY(input), y = ARRAY(values), i = ARRAY(indices);
    enum dtype dtype = dtype_of(x);
    struct pooling pooling;
    struct half half = half_of(dtype);
    if (dtype_of(y) != dtype || dtype_of(i) != INT64 || (dtype != FLOAT32 && dtype != FLOAT64 && !half.widen))
        return WRONG_DTYPE;
    if (!same_shape(y, i) || !is_contiguous(i)) return WRONG_SHAPE;
    enum status status = open_pooling(&pooling, x, y, ARRAY(options), false);
    if (status) return status;
    const struct windows *w = pooling.dim + 2;
    struct max_job job = {&pooling, x->data, y->data, (int64_t *)i->data, pattern_of(&pooling), NULL};
    ssize_t rows = pooling.planes * pooling.dim[0].count * pooling.dim[1].count;
    ssize_t elements = plane_size(&pooling) / (pooling.dim[0].count * pooling.dim[1].count + 1) + w->count;
    if (dtype != FLOAT64 && plane_size(&pooling) > INT32_MAX / 2) status = UNSUPPORTED;
    else if (w->stride && !(job.taps = allocate_items(w->kernel, sizeof *job.taps))) status = NO_MEMORY;
    if (job.taps)
        for (ssize_t t = 0; t < w->kernel; t++) job.taps[t] = windows_with_tap(w, t);
    if (!status && half.widen) {
        struct half_planes planes = {.half = half, .max = job, .rows = rows / (pooling.planes ? pooling.planes : 1)};
        parallel_for(pooling.planes, grain_for(4 * elements * planes.rows), max_half_planes, &planes);
        if (planes.no_memory) status = NO_MEMORY;
    } else if (!status) {
        parallel_for(rows, grain_for(4 * elements), dtype == FLOAT32 ? max_rows_f32 : max_rows_f64, &job);
    }
    release(job.taps);
    close_pooling(&pooling);
    return status;
}

int max_pool_backward(uintptr_t grad, uintptr_t indices, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    array g = ARRAY(grad), i = ARRAY(indices), y = ARRAY(output);
    enum dtype dtype = dtype_of(g);
    struct half half = half_of(dtype);
    if (dtype_of(y) != dtype || dtype_of(i) != INT64 || (dtype != FLOAT32 && dtype != FLOAT64 && !half.widen))
        return WRONG_DTYPE;
    if (g->ndim < 2 || y->ndim < 2 || !same_shape(g, i) || g->shape[0] != y->shape[0] || g->shape[1] != y->shape[1])
        return WRONG_SHAPE;
    if (!is_contiguous(g) || !is_contiguous(i) || !is_contiguous(y)) return WRONG_SHAPE;
    struct scatter_job job = {.grad = g->data, .indices = (const int64_t *)i->data, .out = y->data, .count = 1, .size = 1};
    for (int k = 2; k < g->ndim; k++) job.count *= g->shape[k];
    for (int k = 2; k < y->ndim; k++) job.size *= y->shape[k];
    ssize_t planes = g->shape[0] * g->shape[1];
    ssize_t grain = grain_for(4 * job.count + job.size);
    if (half.widen) {
        struct half_planes halves = {.half = half, .scatter = job};
        parallel_for(planes, grain, add_half_planes, &halves);
        if (halves.no_memory) return NO_MEMORY;
        return atomic_load(&halves.scatter.out_of_range) ? OUT_OF_RANGE : OK;
    }
    parallel_for(planes, grain, dtype == FLOAT32 ? add_to_maxima_f32 : add_to_maxima_f64, &job);
    return atomic_load(&job.out_of_range) ? OUT_OF_RANGE : OK;
}
