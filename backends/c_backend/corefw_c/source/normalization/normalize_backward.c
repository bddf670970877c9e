/* Gradients of normalisations over groups and over channels: of the input, and in the same passes of weight and bias. */
#include "core/array.h"
#include "kernels.h"
#include "core/lanes.h"
#include "core/memory.h"
#include "core/sizes.h"
#include "normalization/normalize.h"
#include "core/threads.h"
#include "core/widening.h"

#include <stdatomic.h>
#include <string.h>

enum { WIDENED = 2048 }; /* halves, of several rows: three such parts fit the first-level cache */

/* Groups: `rows` rows of `groups` alternating groups of channels of elements. Channels: `rows` samples of channels of
 * elements. The gradients of weight and bias may be NULL; those of groups are summed in blocks:
 * partial[blocks][2][groups * channels]. g, x and y may be of a half type, all others then are of float. */
struct normalize_backward_job {
    ssize_t rows, groups, channels, elements, block, blocks; /* block: rows that it has */
    const void *g, *x, *weight, *mean, *scale;               /* weight and mean may be NULL */
    void *y, *of_weight, *of_bias, *partial;
    struct half half;
    atomic_bool no_memory;
};

#define TEMPLATE "reduction/row_sums.inc"
#include "core/each_real.h"
#define TEMPLATE "reduction/column_sums.inc"
#include "core/each_real.h"
#define TEMPLATE "normalization/normalize_backward.inc"
#include "core/each_real.h"

/* Fill a job, but for its sizes, from arrays of `count` elements, `vector` weights and `statistics` means and scales. A
 * weight of a half type is widened into memory that is to be released. */
static int prepare(array g, array x, array weight, array mean, array scale, array y, array of_weight, array of_bias,
                   ssize_t count, ssize_t vector, ssize_t statistics, float **widened,
                   struct normalize_backward_job *job) {
    enum dtype dtype = dtype_of(x), wide = computed_in(dtype);
    if (wide != FLOAT32 && wide != FLOAT64) return WRONG_DTYPE;
    if (!fits(g, dtype, count) || !fits(x, dtype, count) || !fits(y, dtype, count) || !fits_either(weight, dtype, vector) ||
        !fits(mean, wide, statistics) || !fits(scale, wide, statistics) || !fits(of_weight, wide, vector) ||
        !fits(of_bias, wide, vector) || !of_weight != !of_bias)
        return WRONG_SHAPE;
    *job = (struct normalize_backward_job){
        .g = g->data,
        .x = x->data,
        .weight = data_of(weight),
        .mean = data_of(mean),
        .scale = scale->data,
        .y = y->data,
        .of_weight = data_of(of_weight),
        .of_bias = data_of(of_bias),
        .half = half_of(dtype),
    };
    *widened = NULL;
    if (!weight || dtype_of(weight) == wide) return OK;
    if (!(*widened = allocate_items(vector, sizeof **widened))) return NO_MEMORY;
    job->weight = floats_of(weight, *widened);
    return OK;
}

/* Sums over blocks of rows, or of groups, and the input's gradient. */
static int over_groups(struct normalize_backward_job *job, bool is_float) {
    ssize_t n = job->channels * job->elements, vector = job->groups * job->channels;
    if (job->of_weight &&
        !(job->partial = allocate_items(size_times(2 * job->blocks, vector), is_float ? sizeof(float) : sizeof(double))))
        return NO_MEMORY;
    if (job->elements == 1)
        parallel_for(job->blocks, grain_for(n * job->block), is_float ? rows_backward_f32 : rows_backward_f64, job);
    else parallel_for(job->rows, grain_for(n), is_float ? groups_backward_f32 : groups_backward_f64, job);
    if (job->of_weight && !job->no_memory)
        parallel_for(vector, grain_for(job->blocks), is_float ? add_partial_f32 : add_partial_f64, job);
    release(job->partial);
    return job->no_memory ? NO_MEMORY : OK;
}

int normalize_groups_backward(uintptr_t gradient, uintptr_t input, intptr_t channels, uintptr_t weight, uintptr_t mean,
                              uintptr_t scale, uintptr_t grad_input, uintptr_t grad_weight, uintptr_t grad_bias) {
    if (!WRITABLE(grad_input, grad_weight, grad_bias)) return READ_ONLY;
    array x = ARRAY(input), w = ARRAY(weight), s = ARRAY(scale), dw = ARRAY(grad_weight), db = ARRAY(grad_bias);
    ssize_t count = count_of(x), rows = count_of(s), vector = w ? count_of(w) : channels;
    struct normalize_backward_job job;
    float *widened;
    int status = prepare(ARRAY(gradient), x, w, ARRAY(mean), s, ARRAY(grad_input), dw, db, count, vector, rows, &widened,
                         &job);
    if (status) return status;
    if (count == 0) {
        size_t size = dw ? (size_t)vector * size_of(dtype_of(dw)) : 0;
        if (dw) memset(dw->data, 0, size), memset(db->data, 0, size);
    } else if (channels < 1 || rows < 1 || count % rows || count / rows % channels || vector < 1 || vector % channels ||
               rows % (vector / channels) || (dw && !w))
        status = WRONG_SHAPE;
    else {
        job.rows = rows, job.groups = vector / channels, job.channels = channels;
        job.elements = count / rows / channels;
        /* independent of the number of threads */
        job.block = job.elements > 1 ? job.groups : rows < 512 ? (rows + 7) / 8 : 64;
        job.blocks = (rows + job.block - 1) / job.block;
        status = over_groups(&job, computed_in(dtype_of(x)) == FLOAT32);
    }
    release(widened);
    return status;
}

int normalize_channels_backward(uintptr_t gradient, uintptr_t input, intptr_t elements, uintptr_t weight,
                                uintptr_t mean, uintptr_t scale, uintptr_t grad_input, uintptr_t grad_weight,
                                uintptr_t grad_bias) {
    if (!WRITABLE(grad_input, grad_weight, grad_bias)) return READ_ONLY;
    array x = ARRAY(input), s = ARRAY(scale);
    ssize_t count = count_of(x), channels = count_of(s);
    if (count && (elements < 1 || channels < 1 || count % size_times(channels, elements))) return WRONG_SHAPE;
    struct normalize_backward_job job;
    float *widened;
    int status = prepare(ARRAY(gradient), x, ARRAY(weight), ARRAY(mean), s, ARRAY(grad_input), ARRAY(grad_weight),
                         ARRAY(grad_bias), count, channels, channels, &widened, &job);
    if (status) return status;
    job.rows = count ? count / (channels * elements) : 0, job.channels = channels, job.elements = elements;
    bool is_float = computed_in(dtype_of(x)) == FLOAT32;
    if (elements == 1) {
        ssize_t columns = is_float ? COLUMNS_f32 : COLUMNS_f64, blocks = (channels + columns - 1) / columns;
        parallel_for(blocks, grain_for(job.rows * columns), is_float ? columns_backward_f32 : columns_backward_f64,
                     &job);
    } else
        parallel_for(channels, grain_for(job.rows * elements), is_float ? channels_backward_f32 : channels_backward_f64,
                     &job);
    release(widened);
    return job.no_memory ? NO_MEMORY : OK;
}
