/* Losses of two arrays of one shape: squared errors, and negative log-likelihoods of Bernoulli variables. */
#include "core/array.h"
#include "kernels.h"
#include "core/lanes.h"
#include "core/memory.h"
#include "core/threads.h"
#include "core/widening.h"

#include <stdatomic.h>

enum { SUMMED = 16384 };            /* elements of a sum that one thread makes */
enum { WIDENED = 1024 };            /* halves */
struct loss_job {
    ssize_t count;
    const void *a, *b, *g; /* g: gradients of the losses, or NULL */
    double factor;
    void *y;
    double *sums;
    struct half half; /* of all arrays, but not of `sums` */
    atomic_int outside;
};

#define TEMPLATE "loss/losses.inc"
#include "core/each_real.h"

static bool is_alike(array a, array b) {
    return dtype_of(a) == dtype_of(b) && same_shape(a, b) && is_contiguous(a) && is_contiguous(b);
}

/* Run a range over the elements of y = f(a, b). */
static int elementwise(array a, array b, array y, struct loss_job *job, ssize_t cost, range_task of_f32,
                       range_task of_f64) {
    if (!is_alike(a, b) || !is_alike(a, y)) return WRONG_SHAPE;
    job->count = count_of(a);
    job->a = a->data, job->b = b->data, job->y = y->data;
    job->half = half_of(dtype_of(a));
    switch (computed_in(dtype_of(a))) {
    case FLOAT32: parallel_for(job->count, grain_for(cost), of_f32, job); return OK;
    case FLOAT64: parallel_for(job->count, grain_for(2 * cost), of_f64, job); return OK;
    default: return WRONG_DTYPE;
    }
}

int squared_error(uintptr_t input, uintptr_t target, int reduction, uintptr_t loss) {
    if (!WRITABLE(loss)) return READ_ONLY;
    array a = ARRAY(input), b = ARRAY(target), y = ARRAY(loss);
    struct loss_job job = {0};
    if (reduction == NONE) return elementwise(a, b, y, &job, 1, squared_error_range_f32, squared_error_range_f64);
    enum dtype dtype = dtype_of(a), wide = computed_in(dtype);
    if (!is_alike(a, b) || y->ndim || dtype_of(y) != dtype) return WRONG_SHAPE;
    if (wide != FLOAT32 && wide != FLOAT64) return WRONG_DTYPE;
    job.count = count_of(a), job.a = a->data, job.b = b->data, job.half = half_of(dtype);
    double few[16], total = 0;
    ssize_t blocks = (job.count + SUMMED - 1) / SUMMED;
    job.sums = blocks <= 16 ? few : allocate_items(blocks, sizeof *job.sums);
    if (!job.sums) return NO_MEMORY;
    parallel_for(blocks, grain_for(SUMMED / 4), wide == FLOAT32 ? squared_error_sums_f32 : squared_error_sums_f64, &job);
    for (ssize_t i = 0; i < blocks; i++) total += job.sums[i];
    if (blocks > 16) release(job.sums);
    write_real(y, reduction == MEAN ? total / (double)job.count : total);
    return OK;
}

int squared_error_backward(uintptr_t grad, uintptr_t input, uintptr_t target, int reduction, uintptr_t result) {
    if (!WRITABLE(result)) return READ_ONLY;
    array g = ARRAY(grad), a = ARRAY(input), b = ARRAY(target), y = ARRAY(result);
    struct loss_job job = {.factor = 2};
    enum dtype wide = computed_in(dtype_of(a));
    if (dtype_of(g) != dtype_of(a) || (wide != FLOAT32 && wide != FLOAT64)) return WRONG_DTYPE;
    if (g->ndim == 0) job.factor *= read_real(g);
    else if (is_alike(g, a)) job.g = g->data;
    else return WRONG_SHAPE;
    if (reduction == MEAN) job.factor /= (double)count_of(a);
    return elementwise(a, b, y, &job, 1, squared_error_backward_range_f32, squared_error_backward_range_f64);
}

int bernoulli_nll(uintptr_t input, uintptr_t target, uintptr_t loss) {
    if (!WRITABLE(loss)) return READ_ONLY;
    struct loss_job job = {0};
    int status = elementwise(ARRAY(input), ARRAY(target), ARRAY(loss), &job, 5, bernoulli_nll_range_f32,
                             bernoulli_nll_range_f64);
    return status ? status : atomic_load(&job.outside) ? OUT_OF_RANGE : OK;
}

int logistic_loss(uintptr_t input, uintptr_t target, uintptr_t loss) {
    if (!WRITABLE(loss)) return READ_ONLY;
    struct loss_job job = {0};
    return elementwise(ARRAY(input), ARRAY(target), ARRAY(loss), &job, 5, logistic_loss_range_f32,
                       logistic_loss_range_f64);
}
