/* Resampling: elements at given positions, weighed and summed, along three spatial dimensions. */
#include "core/array.h"
#include "kernels.h"
#include "core/memory.h"
#include "core/sizes.h"
#include "core/threads.h"
#include "core/widening.h"

#include <stdatomic.h>

/* Which elements each place of the result sums along a dimension. */
struct taps {
    ssize_t size, places, count; /* elements, places, and elements for each place */
    const int32_t *positions;    /* [count][places] */
    const void *weights;
};

struct resampling {
    struct taps taps[3];
    const char *x;
    char *y;
    struct half half; /* of half types, which are weighed as floats */
    atomic_bool no_memory;
};

#define TEMPLATE "resampling/resampling.inc"
#include "core/each_real.h"

/* The taps that two arrays hold, if they fit dimension `dim` of x and y. */
static enum status read_taps(struct taps *taps, array x, array y, int dim, array positions, array weights) {
    if (dtype_of(positions) != INT32 || dtype_of(weights) != computed_in(dtype_of(x))) return WRONG_DTYPE;
    if (positions->ndim != 2 || !same_shape(positions, weights)) return WRONG_SHAPE;
    if (!is_contiguous(positions) || !is_contiguous(weights)) return WRONG_SHAPE;
    *taps = (struct taps){x->shape[dim], y->shape[dim], positions->shape[0], (const int32_t *)positions->data, weights->data};
    if (positions->shape[1] != taps->places || taps->count < 1) return WRONG_SHAPE;
    for (ssize_t i = 0; i < taps->count * taps->places; i++)
        if (taps->positions[i] < 0 || taps->positions[i] >= taps->size) return OUT_OF_RANGE;
    return OK;
}

int resample(uintptr_t input, const uintptr_t *arrays, int count, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    static const int32_t here = 0;
    static const float one_f32 = 1;
    static const double one_f64 = 1;
    array x = ARRAY(input), y = ARRAY(output);
    enum dtype dtype = computed_in(dtype_of(x));
    int n = x->ndim - 2;
    if ((dtype != FLOAT32 && dtype != FLOAT64) || dtype_of(y) != dtype_of(x)) return WRONG_DTYPE;
    if (n < 1 || n > 3 || y->ndim != x->ndim || count != 2 * n || !is_contiguous(x) || !is_contiguous(y)) return WRONG_SHAPE;
    if (x->shape[0] != y->shape[0] || x->shape[1] != y->shape[1]) return WRONG_SHAPE;
    struct resampling job = {.x = x->data, .y = y->data, .half = half_of(dtype_of(x))};
    ssize_t rows = x->shape[0] * x->shape[1];
    for (int i = 0; i < 3; i++) {
        int j = i - (3 - n); /* among the n dimensions that there are */
        job.taps[i] = (struct taps){1, 1, 1, &here, dtype == FLOAT32 ? (const void *)&one_f32 : (const void *)&one_f64};
        if (j < 0) continue;
        enum status status = read_taps(job.taps + i, x, y, j + 2, ARRAY(arrays[2 * j]), ARRAY(arrays[2 * j + 1]));
        if (status) return status;
    }
    const struct taps *d = job.taps, *h = job.taps + 1, *w = job.taps + 2;
    rows *= d->places * h->places;
    parallel_for(rows, grain_for(d->count * h->count * w->size + 3 * w->count * w->places),
                 dtype == FLOAT32 ? resample_rows_f32 : resample_rows_f64, &job);
    return atomic_load(&job.no_memory) ? NO_MEMORY : OK;
}
