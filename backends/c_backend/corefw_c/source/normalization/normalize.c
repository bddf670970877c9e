/* Normalisations: elements brought to mean 0 and variance 1 over groups or channels, or by given statistics. */
#include "core/array.h"
#include "kernels.h"
#include "core/lanes.h"
#include "normalization/normalize.h"
#include "core/threads.h"

/* An array is seen as rows of groups of channels of elements, or as samples of channels of elements; weight and bias,
 * which may be NULL, have an element per channel. */
struct normalize_job {
    ssize_t samples, groups, channels, elements; /* channels: in a group */
    double eps;
    const void *x, *weight, *bias;
    void *y, *mean, *scale, *variance; /* scales of groups, whose means may be NULL; variances of channels */
};

/* y = (x - centre) * factor + shift, where the vectors have an element per channel; centre and shift may be NULL. */
struct affine_job {
    ssize_t channels, elements;
    const void *x, *centre, *factor, *shift;
    void *y;
};

#define TEMPLATE "reduction/row_sums.inc"
#include "core/each_real.h"
#define TEMPLATE "reduction/column_sums.inc"
#include "core/each_real.h"
#define TEMPLATE "normalization/normalize.inc"
#include "core/each_real.h"

int normalize_groups(uintptr_t input, intptr_t channels, uintptr_t weight, uintptr_t bias, double eps, uintptr_t output,
                     uintptr_t mean, uintptr_t scale) {
    if (!WRITABLE(output, mean, scale)) return READ_ONLY;
    array x = ARRAY(input), y = ARRAY(output), w = ARRAY(weight), b = ARRAY(bias), m = ARRAY(mean), s = ARRAY(scale);
    enum dtype dtype = dtype_of(x);
    if (dtype != FLOAT32 && dtype != FLOAT64) return WRONG_DTYPE;
    ssize_t count = count_of(x), rows = count_of(s), n = rows ? count / rows : 0;
    ssize_t vector = w ? count_of(w) : b ? count_of(b) : channels;
    if (n == 0) channels = vector = 1, w = b = NULL; /* only statistics, of nothing */
    if (channels < 1 || rows * n != count || n % channels || vector < 1 || vector % channels ||
        rows % (vector / channels))
        return WRONG_SHAPE;
    if (!fits(x, dtype, count) || !fits(y, dtype, count) || !fits(w, dtype, vector) || !fits(b, dtype, vector) ||
        !fits(m, dtype, rows) || !fits(s, dtype, rows))
        return WRONG_SHAPE;
    struct normalize_job job = {.groups = vector / channels,
                                .channels = channels,
                                .elements = n / channels,
                                .eps = eps,
                                .x = x->data,
                                .weight = data_of(w),
                                .bias = data_of(b),
                                .y = y->data,
                                .mean = data_of(m),
                                .scale = s->data};
    parallel_for(rows, grain_for(n), dtype == FLOAT32 ? normalize_groups_f32 : normalize_groups_f64, &job);
    return OK;
}

int normalize_channels(uintptr_t input, uintptr_t weight, uintptr_t bias, double eps, uintptr_t output, uintptr_t mean,
                       uintptr_t variance) {
    if (!WRITABLE(output, mean, variance)) return READ_ONLY;
    array x = ARRAY(input), y = ARRAY(output), w = ARRAY(weight), b = ARRAY(bias), m = ARRAY(mean), v = ARRAY(variance);
    enum dtype dtype = dtype_of(x);
    if (dtype != FLOAT32 && dtype != FLOAT64) return WRONG_DTYPE;
    if (x->ndim < 2) return WRONG_SHAPE;
    ssize_t samples = x->shape[0], channels = x->shape[1], elements = 1, count = count_of(x);
    for (int i = 2; i < x->ndim; i++) elements *= x->shape[i];
    if (!fits(x, dtype, count) || !fits(y, dtype, count) || !fits(w, dtype, channels) || !fits(b, dtype, channels) ||
        !fits(m, dtype, channels) || !fits(v, dtype, channels))
        return WRONG_SHAPE;
    struct normalize_job job = {.samples = samples,
                                .channels = channels,
                                .elements = elements,
                                .eps = eps,
                                .x = x->data,
                                .weight = data_of(w),
                                .bias = data_of(b),
                                .y = y->data,
                                .mean = m->data,
                                .variance = v->data};
    if (elements == 1) {
        ssize_t columns = dtype == FLOAT32 ? COLUMNS_f32 : COLUMNS_f64, blocks = (channels + columns - 1) / columns;
        range_task task = dtype == FLOAT32 ? normalize_columns_f32 : normalize_columns_f64;
        parallel_for(blocks, grain_for(samples * columns), task, &job);
    } else {
        range_task task = dtype == FLOAT32 ? normalize_channels_f32 : normalize_channels_f64;
        parallel_for(channels, grain_for(samples * elements), task, &job);
    }
    return OK;
}

int affine_channels(uintptr_t input, intptr_t elements, uintptr_t centre, uintptr_t factor, uintptr_t shift,
                    uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    array x = ARRAY(input), y = ARRAY(output), c = ARRAY(centre), f = ARRAY(factor), s = ARRAY(shift);
    enum dtype dtype = dtype_of(x);
    if (dtype != FLOAT32 && dtype != FLOAT64) return WRONG_DTYPE;
    ssize_t count = count_of(x), channels = count_of(f);
    if (!fits(x, dtype, count) || !fits(y, dtype, count) || !fits(c, dtype, channels) || !fits(f, dtype, channels) ||
        !fits(s, dtype, channels))
        return WRONG_SHAPE;
    if (count == 0) return OK;
    if (elements < 1 || channels < 1 || count % (channels * elements)) return WRONG_SHAPE;
    struct affine_job job = {channels, elements, x->data, data_of(c), f->data, data_of(s), y->data};
    if (elements == 1) {
        range_task task = dtype == FLOAT32 ? affine_samples_f32 : affine_samples_f64;
        parallel_for(count / channels, grain_for(channels / 2), task, &job);
    } else {
        range_task task = dtype == FLOAT32 ? affine_channels_f32 : affine_channels_f64;
        parallel_for(count / elements, grain_for(elements / 2), task, &job);
    }
    return OK;
}
