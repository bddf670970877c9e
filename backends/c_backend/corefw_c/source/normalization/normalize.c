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

enum { WIDENED = 8192 }; /* halves, of several rows */

/* An array is seen as rows of groups of channels of elements, or as samples of channels of elements; weight and bias,
 * which may be NULL, have an element per channel. */
struct normalize_job {
    ssize_t samples, groups, channels, elements; /* channels: in a group */
    double eps;
    const void *x, *weight, *bias;
    void *y, *mean, *scale, *variance; /* scales of groups, whose means may be NULL; variances of channels */
    const void *added;                 /* of channels: to be added, or NULL */
    bool positive;                     /* whether only the positive part stays */
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

/* -- half types: rows or channels as floats, beside vectors of float -- */
struct half_normalize_job {
    struct half half;
    struct normalize_job floats; /* but for x and y, which are halves */
    atomic_bool no_memory;
};

/* Rows, in bundles. */
static void normalize_half_groups(void *context, ssize_t begin, ssize_t end) {
    enum { BUNDLED = 4096 };
    struct half_normalize_job *job = context;
    const struct normalize_job *of = &job->floats;
    ssize_t n = of->channels * of->elements, bundle = of->groups == 1 && n < BUNDLED ? BUNDLED / n : 1;
    float *x = allocate_items(2 * bundle, (size_t)n * sizeof *x), *y = x + bundle * n;
    if (!x) {
        job->no_memory = true;
        return;
    }
    for (ssize_t row = begin; row < end; row += bundle) {
        ssize_t rows = end - row < bundle ? end - row : bundle, first = row % of->groups * of->channels;
        struct normalize_job part = *of;
        part.groups = 1, part.x = x, part.y = y, part.scale = (float *)of->scale + row;
        if (of->mean) part.mean = (float *)of->mean + row;
        if (of->groups > 1 && of->weight) part.weight = (const float *)of->weight + first;
        if (of->groups > 1 && of->bias) part.bias = (const float *)of->bias + first;
        job->half.widen(rows * n, (const uint16_t *)of->x + row * n, x);
        normalize_groups_f32(&part, 0, rows);
        job->half.narrow(rows * n, y, (uint16_t *)of->y + row * n);
    }
    release(x);
}

/* Channels of all samples, or blocks of channels of one element. */
static void normalize_half_channels(void *context, ssize_t begin, ssize_t end) {
    struct half_normalize_job *job = context;
    const struct normalize_job *of = &job->floats;
    ssize_t elements = of->elements, row = of->channels * elements, step = elements == 1 ? COLUMNS_f32 : 1;
    float *x = allocate_items(2 * of->samples, (size_t)(step * elements) * sizeof *x);
    if (!x) {
        job->no_memory = true;
        return;
    }
    float *y = x + of->samples * step * elements;
    for (ssize_t first = begin * step; first < end * step && first < of->channels; first += step) {
        struct normalize_job part = *of;
        part.channels = of->channels - first < step ? of->channels - first : step;
        part.x = x, part.y = y, part.mean = (float *)of->mean + first, part.variance = (float *)of->variance + first;
        if (of->weight) part.weight = (const float *)of->weight + first;
        if (of->bias) part.bias = (const float *)of->bias + first;
        ssize_t n = part.channels * elements, at = first * elements;
        widen_rows(job->half, of->samples, n, (const uint16_t *)of->x + at, row, x);
        (elements == 1 ? normalize_columns_f32 : normalize_channels_f32)(&part, 0, 1);
        narrow_rows(job->half, of->samples, n, y, (uint16_t *)of->y + at, row);
    }
    release(x);
}

/* Run a task over half types: `of` has everything but the floats of weight and bias. */
static int normalize_halves(struct half half, const struct normalize_job *of, array weight, array bias, ssize_t count,
                            ssize_t grain, range_task task) {
    ssize_t most = weight ? count_of(weight) : 0, more = bias ? count_of(bias) : 0;
    float *copies = allocate_items(size_plus(most, more), sizeof *copies);
    if (!copies) return NO_MEMORY;
    struct half_normalize_job job = {.half = half, .floats = *of};
    job.floats.weight = floats_of(weight, copies);
    job.floats.bias = floats_of(bias, copies + most);
    parallel_for(count, grain, task, &job);
    release(copies);
    return job.no_memory ? NO_MEMORY : OK;
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
                                .weight = data_of(w),
                                .bias = data_of(b),
                                .y = y->data,
                                .mean = data_of(m),
                                .scale = s->data};
    if (wide != dtype)
        return normalize_halves(half_of(dtype), &job, w, b, n ? rows : 0, grain_for(n), normalize_half_groups);
    parallel_for(rows, grain_for(n), dtype == FLOAT32 ? normalize_groups_f32 : normalize_groups_f64, &job);
    return OK;
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
                                .weight = data_of(w),
                                .bias = data_of(b),
                                .y = y->data,
                                .mean = m->data,
                                .variance = v->data,
                                .added = data_of(more),
                                .positive = positive};
    if (wide != dtype) {
        ssize_t step = elements == 1 ? COLUMNS_f32 : 1, blocks = (channels + step - 1) / step;
        return normalize_halves(half_of(dtype), &job, w, b, blocks, grain_for(samples * elements * step),
                                normalize_half_channels);
    }
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
