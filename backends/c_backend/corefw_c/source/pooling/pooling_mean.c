/* Pooling by the mean, and its gradient. */
#include "kernels.h"
#include "core/lanes.h"
#include "core/memory.h"
#include "core/sizes.h"
#include "core/threads.h"
#include "core/widening.h"
#include "pooling/windows.h"

#include <stdatomic.h>
#include <string.h>

struct mean_job {
    const struct pooling *pooling;
    char *x, *y;
    double divisor;     /* instead of the windows' sizes, unless 0 */
    struct range whole; /* the windows of a row of which no part is padding */
    atomic_bool no_memory;
};

/* Whether each place lies in exactly one window. */
static bool cover_once(const struct windows *w) {
    ssize_t end = 0;
    for (ssize_t i = 0; i < w->count; end = w->at[i].begin + w->at[i].taps, i++)
        if (w->at[i].begin != end) return false;
    return end == w->size;
}

/* Whether the only window is a whole plane. */
static bool is_global(const struct pooling *p) {
    for (int i = 0; i < 3; i++)
        if (p->dim[i].count != 1 || p->dim[i].at[0].length != p->dim[i].size || !cover_once(p->dim + i)) return false;
    return true;
}

#define TEMPLATE "pooling/pooling_mean.inc"
#include "core/each_real.h"

/* -- half types: planes as floats -- */
struct half_planes {
    struct half half;
    struct mean_job mean;
    range_task task; /* of floats, */
    ssize_t items;   /* of which a plane has so many */
    bool backward;
    atomic_bool no_memory;
};

static void pool_half_planes(void *context, ssize_t begin, ssize_t end) {
    struct half_planes *job = context;
    ssize_t size = plane_size(job->mean.pooling), count = plane_count(job->mean.pooling);
    float *x = allocate_items(size_plus(size, count), sizeof *x), *y = x + size;
    if (!x) {
        job->no_memory = true;
        return;
    }
    for (ssize_t plane = begin; plane < end; plane++) {
        char *halves_of_x = job->mean.x + 2 * plane * size, *halves_of_y = job->mean.y + 2 * plane * count;
        struct mean_job part = {.pooling = job->mean.pooling, .x = (char *)x, .y = (char *)y,
                                .divisor = job->mean.divisor, .whole = job->mean.whole};
        if (job->backward) job->half.widen(count, halves_of_y, y);
        else job->half.widen(size, halves_of_x, x);
        job->task(&part, 0, job->items);
        if (atomic_load(&part.no_memory)) job->no_memory = true;
        if (job->backward) job->half.narrow(size, x, halves_of_x);
        else job->half.narrow(count, y, halves_of_y);
    }
    release(x);
}

/* Means of x in y, or with `backward` the gradient of x in x from that of y. */
static enum status pool(array x, array y, array options, bool padding_counts, double divisor, bool backward) {
    enum dtype dtype = dtype_of(x);
    struct pooling pooling;
    struct half half = half_of(dtype);
    if (dtype_of(y) != dtype || (dtype != FLOAT32 && dtype != FLOAT64 && !half.widen)) return WRONG_DTYPE;
    enum status status = open_pooling(&pooling, x, y, options, padding_counts);
    if (status) return status;
    struct mean_job job = {.pooling = &pooling, .x = x->data, .y = y->data, .divisor = divisor,
                           .whole = whole_windows(pooling.dim + 2)};
    ssize_t rows = pooling.dim[0].count * pooling.dim[1].count, elements = plane_size(&pooling) + plane_count(&pooling);
    bool wide = dtype == FLOAT64, global = is_global(&pooling);
    if (half.widen) {
        struct half_planes halves = {.half = half, .mean = job, .backward = backward};
        halves.task = global && backward ? fill_planes_f32 : global ? mean_planes_f32 : backward ? share_planes_f32 : mean_rows_f32;
        halves.items = global || backward ? 1 : rows;
        parallel_for(pooling.planes, grain_for(2 * elements), pool_half_planes, &halves);
        if (halves.no_memory) atomic_store(&job.no_memory, true);
    } else if (global) {
        if (backward) parallel_for(pooling.planes, grain_for(elements), wide ? fill_planes_f64 : fill_planes_f32, &job);
        else parallel_for(pooling.planes, grain_for(elements), wide ? mean_planes_f64 : mean_planes_f32, &job);
    } else if (backward) {
        parallel_for(pooling.planes, grain_for(2 * elements), wide ? share_planes_f64 : share_planes_f32, &job);
    } else {
        parallel_for(pooling.planes * rows, grain_for(elements / (rows + 1) + 1), wide ? mean_rows_f64 : mean_rows_f32, &job);
    }
    close_pooling(&pooling);
    return atomic_load(&job.no_memory) ? NO_MEMORY : OK;
}

int avg_pool(uintptr_t input, uintptr_t options, int padding_counts, double divisor, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    return (int)pool(ARRAY(input), ARRAY(output), ARRAY(options), padding_counts, divisor, false);
}

int avg_pool_backward(uintptr_t grad, uintptr_t options, int padding_counts, double divisor, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    return (int)pool(ARRAY(output), ARRAY(grad), ARRAY(options), padding_counts, divisor, true);
}
