/* Gradients of normalisations over groups and over channels: of the input, and in the same passes of weight and bias. */
#include "core/array.h"
#include "kernels.h"
#include "core/lanes.h"
#include "core/memory.h"
#include "normalization/normalize.h"
#include "core/threads.h"

#include <string.h>

/* Groups: `rows` rows of `groups` alternating groups of channels of elements. Channels: `rows` samples of channels of
 * elements. The gradients of weight and bias may be NULL; those of groups are summed in blocks:
 * partial[blocks][2][groups * channels]. */
struct normalize_backward_job {
    ssize_t rows, groups, channels, elements, block, blocks; /* block: rows that it has */
    const void *g, *x, *weight, *mean, *scale;               /* weight and mean may be NULL */
    void *y, *of_weight, *of_bias, *partial;
};

#define TEMPLATE "reduction/row_sums.inc"
#include "core/each_real.h"
#define TEMPLATE "reduction/column_sums.inc"
#include "core/each_real.h"
#define TEMPLATE "normalization/normalize_backward.inc"
#include "core/each_real.h"

/* A job on these arrays, without its sizes. */
static struct normalize_backward_job job_on(array g, array x, array weight, array mean, array scale, array y,
                                            array of_weight, array of_bias) {
    return (struct normalize_backward_job){
        .g = g->data,
        .x = x->data,
        .weight = data_of(weight),
        .mean = data_of(mean),
        .scale = scale->data,
        .y = y->data,
        .of_weight = data_of(of_weight),
        .of_bias = data_of(of_bias),
    };
}

int normalize_groups_backward(uintptr_t gradient, uintptr_t input, intptr_t channels, uintptr_t weight, uintptr_t mean,
                              uintptr_t scale, uintptr_t grad_input, uintptr_t grad_weight, uintptr_t grad_bias) {
    if (!WRITABLE(grad_input, grad_weight, grad_bias)) return READ_ONLY;
    array g = ARRAY(gradient), x = ARRAY(input), w = ARRAY(weight), m = ARRAY(mean), s = ARRAY(scale),
          y = ARRAY(grad_input), dw = ARRAY(grad_weight), db = ARRAY(grad_bias);
    enum dtype dtype = dtype_of(x);
    if (dtype != FLOAT32 && dtype != FLOAT64) return WRONG_DTYPE;
    ssize_t count = count_of(x), rows = count_of(s), vector = w ? count_of(w) : channels;
    if (!fits(g, dtype, count) || !fits(x, dtype, count) || !fits(y, dtype, count) || !fits(w, dtype, vector) ||
        !fits(m, dtype, rows) || !fits(s, dtype, rows) || !fits(dw, dtype, vector) || !fits(db, dtype, vector) ||
        !dw != !db)
        return WRONG_SHAPE;
    if (count == 0) {
        if (dw)
            memset(dw->data, 0, (size_t)vector * size_of(dtype)), memset(db->data, 0, (size_t)vector * size_of(dtype));
        return OK;
    }
    if (channels < 1 || rows < 1 || count % rows || count / rows % channels || vector < 1 || vector % channels ||
        rows % (vector / channels) || (dw && !w))
        return WRONG_SHAPE;
    ssize_t n = count / rows, groups = vector / channels;
    bool is_float = dtype == FLOAT32, by_rows = n == channels;
    struct normalize_backward_job job = job_on(g, x, w, m, s, y, dw, db);
    job.rows = rows, job.groups = groups, job.channels = channels, job.elements = n / channels;
    job.block = !by_rows ? groups : rows < 512 ? (rows + 7) / 8 : 64; /* independent of the number of threads */
    job.blocks = (rows + job.block - 1) / job.block;
    if (dw && !(job.partial = allocate_items(2 * job.blocks * vector, size_of(dtype)))) return NO_MEMORY;
    if (by_rows)
        parallel_for(job.blocks, grain_for(n * job.block), is_float ? rows_backward_f32 : rows_backward_f64, &job);
    else parallel_for(rows, grain_for(n), is_float ? groups_backward_f32 : groups_backward_f64, &job);
    if (dw) parallel_for(vector, grain_for(job.blocks), is_float ? add_partial_f32 : add_partial_f64, &job);
    release(job.partial);
    return OK;
}

int normalize_channels_backward(uintptr_t gradient, uintptr_t input, intptr_t elements, uintptr_t weight,
                                uintptr_t mean, uintptr_t scale, uintptr_t grad_input, uintptr_t grad_weight,
                                uintptr_t grad_bias) {
    if (!WRITABLE(grad_input, grad_weight, grad_bias)) return READ_ONLY;
    array g = ARRAY(gradient), x = ARRAY(input), w = ARRAY(weight), m = ARRAY(mean), s = ARRAY(scale),
          y = ARRAY(grad_input), dw = ARRAY(grad_weight), db = ARRAY(grad_bias);
    enum dtype dtype = dtype_of(x);
    if (dtype != FLOAT32 && dtype != FLOAT64) return WRONG_DTYPE;
    ssize_t count = count_of(x), channels = count_of(s);
    if (!fits(g, dtype, count) || !fits(x, dtype, count) || !fits(y, dtype, count) || !fits(w, dtype, channels) ||
        !fits(m, dtype, channels) || !fits(dw, dtype, channels) || !fits(db, dtype, channels) ||
        !fits(s, dtype, channels) || !dw != !db)
        return WRONG_SHAPE;
    if (count && (elements < 1 || channels < 1 || count % (channels * elements))) return WRONG_SHAPE;
    struct normalize_backward_job job = job_on(g, x, w, m, s, y, dw, db);
    job.rows = count ? count / (channels * elements) : 0, job.channels = channels, job.elements = elements;
    bool is_float = dtype == FLOAT32;
    if (elements == 1) {
        ssize_t columns = is_float ? COLUMNS_f32 : COLUMNS_f64, blocks = (channels + columns - 1) / columns;
        parallel_for(blocks, grain_for(job.rows * columns), is_float ? columns_backward_f32 : columns_backward_f64,
                     &job);
    } else
        parallel_for(channels, grain_for(job.rows * elements), is_float ? channels_backward_f32 : channels_backward_f64,
                     &job);
    return OK;
}
