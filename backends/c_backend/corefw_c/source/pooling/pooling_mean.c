/* Pooling by the mean, and its gradient. */
#include "kernels.h"
#include "core/memory.h"
#include "core/threads.h"
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

/* Means of x in y, or with `backward` the gradient of x in x from that of y. */
static enum status pool(array x, array y, array options, bool padding_counts, double divisor, bool backward) {
    enum dtype dtype = dtype_of(x);
    struct pooling pooling;
    if ((dtype != FLOAT32 && dtype != FLOAT64) || dtype_of(y) != dtype) return WRONG_DTYPE;
    enum status status = open_pooling(&pooling, x, y, options, padding_counts);
    if (status) return status;
    struct mean_job job = {.pooling = &pooling, .x = x->data, .y = y->data, .divisor = divisor,
                           .whole = whole_windows(pooling.dim + 2)};
    ssize_t rows = pooling.dim[0].count * pooling.dim[1].count, elements = plane_size(&pooling) + plane_count(&pooling);
    bool wide = dtype == FLOAT64;
    if (is_global(&pooling)) {
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
