/* Normalisations: elements brought to mean 0 and variance 1 over groups or channels, or by given statistics. */
#include "core/array.h"
#include "kernels.h"
#include "core/lanes.h"
#include "core/memory.h"
#include "core/sizes.h"
#include "normalization/normalize.h"
#include "core/threads.h"
#include "core/widening.h"

#include <stdatomic.h>

enum { WIDENED = 2048 }; /* halves, of several rows: three such parts fit the first-level cache */

/* An array is seen as rows of groups of channels of elements, or as samples of channels of elements; weight and bias,
 * which may be NULL, have an element per channel. x, y and what is added may be of a half type, all others then are of
 * float. */
struct normalize_job {
    ssize_t samples, groups, channels, elements; /* channels: in a group */
    double eps;
    const void *x, *weight, *bias;
    void *y, *mean, *scale, *variance; /* scales of groups, whose means may be NULL; variances of channels */
    const void *added;                 /* of channels: to be added, or NULL */
    bool positive;                     /* whether only the positive part stays */
    struct half half;
    atomic_bool no_memory;
};

/* y = (x - centre) * factor + shift, where the vectors have an element per channel; centre and shift may be NULL. x and y
 * may be of a half type, beside vectors of float. */
struct affine_job {
    ssize_t channels, elements;
    const void *x, *centre, *factor, *shift;
    void *y;
    struct half half;
    atomic_bool no_memory;
};

#define TEMPLATE "reduction/row_sums.inc"
#include "core/each_real.h"
#define TEMPLATE "reduction/column_sums.inc"
#include "core/each_real.h"
#define TEMPLATE "normalization/normalize.inc"
#include "core/each_real.h"

/* Let the job know the weight and bias, those of a half type as floats in memory that is to be released. */
static int read_vectors(array weight, array bias, struct normalize_job *job, float **widened) {
    ssize_t weights = weight ? count_of(weight) : 0, biases = bias ? count_of(bias) : 0;
    *widened = NULL;
    job->weight = data_of(weight), job->bias = data_of(bias);
    if (!job->half.widen) return OK;
    if (!(*widened = allocate_items(size_plus(weights, biases), sizeof **widened))) return NO_MEMORY;
    job->weight = floats_of(weight, *widened);
    job->bias = floats_of(bias, *widened + weights);
    return OK;
}

int normalize_groups(uintptr_t input, intptr_t channels, uintptr_t weight, uintptr_t bias, double eps, uintptr_t output,
                     uintptr_t mean, uintptr_t scale) {
    if (!WRITABLE(output, mean, scale)) return READ_ONLY;
    array x = ARRAY(input), y = ARRAY(output), w = ARRAY(weight), b = ARRAY(bias), m = ARRAY(mean), s = ARRAY(scale);
    enum dtype dtype = dtype_of(x), wide = computed_in(dtype);
    if (wide != FLOAT32 && wide != FLOAT64) return WRONG_DTYPE;
    ssize_t count = count_of(x), rows = count_of(s), n = rows ? count / rows : 0;
    ssize_t vector = w ? count_of(w) : b ? count_of(b) : channels;
    if (n == 0) channels = vector = 1, w = b = NULL; /* only statistics, of nothing */
    if (channels < 1 || rows * n != count || n % channels || vector < 1 || vector % channels ||
        rows % (vector / channels))
        return WRONG_SHAPE;
    if (!fits(x, dtype, count) || !fits(y, dtype, count) || !fits_either(w, dtype, vector) || !fits_either(b, dtype, vector) ||
        !fits(m, wide, rows) || !fits(s, wide, rows))
        return WRONG_SHAPE;
    struct normalize_job job = {.groups = vector / channels,
                                .channels = channels,
                                .elements = n / channels,
                                .eps = eps,
                                .x = x->data,
                                .y = y->data,
                                .mean = data_of(m),
                                .scale = s->data,
                                .half = half_of(dtype)};
    float *widened;
    int status = read_vectors(w, b, &job, &widened);
    if (status) return status;
    parallel_for(rows, grain_for(n), wide == FLOAT32 ? normalize_groups_f32 : normalize_groups_f64, &job);
    release(widened);
    return job.no_memory ? NO_MEMORY : OK;
}

int normalize_channels(uintptr_t input, uintptr_t weight, uintptr_t bias, double eps, uintptr_t added, int positive,
                       uintptr_t output, uintptr_t mean, uintptr_t variance) {
    if (!WRITABLE(output, mean, variance)) return READ_ONLY;
    array x = ARRAY(input), y = ARRAY(output), w = ARRAY(weight), b = ARRAY(bias), m = ARRAY(mean), v = ARRAY(variance),
          more = ARRAY(added);
    enum dtype dtype = dtype_of(x), wide = computed_in(dtype);
    if (wide != FLOAT32 && wide != FLOAT64) return WRONG_DTYPE;
    if (x->ndim < 2) return WRONG_SHAPE;
    ssize_t samples = x->shape[0], channels = x->shape[1], elements = 1, count = count_of(x);
    for (int i = 2; i < x->ndim; i++) elements *= x->shape[i];
    if (!fits(x, dtype, count) || !fits(y, dtype, count) || !fits_either(w, dtype, channels) || !fits_either(b, dtype, channels) ||
        !fits(m, wide, channels) || !fits(v, wide, channels) || !fits(more, dtype, count))
        return WRONG_SHAPE;
    struct normalize_job job = {.samples = samples,
                                .channels = channels,
                                .elements = elements,
                                .eps = eps,
                                .x = x->data,
                                .y = y->data,
                                .mean = m->data,
                                .variance = v->data,
                                .added = data_of(more),
                                .positive = positive,
                                .half = half_of(dtype)};
    float *widened;
    int status = read_vectors(w, b, &job, &widened);
    if (status) return status;
    if (elements == 1) {
        ssize_t columns = wide == FLOAT32 ? COLUMNS_f32 : COLUMNS_f64, blocks = (channels + columns - 1) / columns;
        range_task task = wide == FLOAT32 ? normalize_columns_f32 : normalize_columns_f64;
        parallel_for(blocks, grain_for(samples * columns), task, &job);
    } else {
        range_task task = wide == FLOAT32 ? normalize_channels_f32 : normalize_channels_f64;
        parallel_for(channels, grain_for(samples * elements), task, &job);
    }
    release(widened);
    return job.no_memory ? NO_MEMORY : OK;
}

int affine_channels(uintptr_t input, intptr_t elements, uintptr_t centre, uintptr_t factor, uintptr_t shift,
                    uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    array x = ARRAY(input), y = ARRAY(output), c = ARRAY(centre), f = ARRAY(factor), s = ARRAY(shift);
    enum dtype dtype = dtype_of(x), wide = computed_in(dtype);
    if (wide != FLOAT32 && wide != FLOAT64) return WRONG_DTYPE;
    ssize_t count = count_of(x), channels = count_of(f);
    if (!fits(x, dtype, count) || !fits(y, dtype, count) || !fits(c, wide, channels) || !fits(f, wide, channels) ||
        !fits(s, wide, channels))
        return WRONG_SHAPE;
    if (count == 0) return OK;
    if (elements < 1 || channels < 1 || count % size_times(channels, elements)) return WRONG_SHAPE;
    struct affine_job job = {.channels = channels,
                             .elements = elements,
                             .x = x->data,
                             .centre = data_of(c),
                             .factor = f->data,
                             .shift = data_of(s),
                             .y = y->data,
                             .half = half_of(dtype)};
    ssize_t n = elements == 1 ? channels : elements;
    parallel_for(count / n, grain_for(n / 2), wide == FLOAT32 ? affine_rows_f32 : affine_rows_f64, &job);
    return job.no_memory ? NO_MEMORY : OK;
}
