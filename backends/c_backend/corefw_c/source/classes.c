/* Losses of class indices: the negative log-likelihood and the cross entropy, with their gradients. */
#include "array.h"
#include "kernels.h"
#include "lanes.h"
#include "threads.h"

#include <string.h>

enum { BUNDLE = 8 };                /* rows whose logarithms are taken at once */
/* Scores x and their gradients y are [samples][classes][inner], targets and what belongs to them [samples][inner]. */
struct class_job {
    ssize_t samples, classes, inner;
    const int64_t *target;
    int64_t ignored;
    const void *x, *weight; /* a weight per class, or NULL */
    void *logsumexp, *y;    /* NULL where there is none */
    const void *gradients;  /* of each loss; or NULL, and all have `gradient` */
    double gradient;
};

#define TEMPLATE "row_sums.inc"
#include "each_real.h"
#define TEMPLATE "exponentials.inc"
#include "each_real.h"
#define TEMPLATE "classes.inc"
#include "each_real.h"

/* Read sizes from scores of shape (N, C, *) or (C,) and targets of shape (N, *) or (), and check the classes. */
static int read_targets(array scores, array target, int64_t ignored, struct class_job *job) {
    int dim = scores->ndim > 1;
    if (scores->ndim < 1 || target->ndim != scores->ndim - 1 || !is_contiguous(scores) || !is_contiguous(target))
        return WRONG_SHAPE;
    for (int i = 0; i < target->ndim; i++)
        if (target->shape[i] != scores->shape[i < dim ? i : i + 1]) return WRONG_SHAPE;
    if (dtype_of(target) != INT64) return WRONG_DTYPE;
    job->samples = dim ? scores->shape[0] : 1;
    job->classes = scores->shape[dim];
    job->inner = 1;
    for (int i = dim + 1; i < scores->ndim; i++) job->inner *= scores->shape[i];
    job->target = (const int64_t *)target->data;
    job->ignored = ignored;
    bool wrong = job->classes == 0 && count_of(target) > 0;
    for (ssize_t i = 0; i < job->samples * job->inner; i++)
        wrong |= job->target[i] != ignored && (uint64_t)job->target[i] >= (uint64_t)job->classes;
    return wrong ? OUT_OF_RANGE : OK;
}

/* Whether an array is dense, of this dtype, and of the shape of the losses. */
static bool is_of_losses(array a, enum dtype dtype, array target, int reduction) {
    return dtype_of(a) == dtype && is_contiguous(a) && (reduction == NONE ? same_shape(a, target) : a->ndim == 0);
}

static void write_real(array a, double value) {
    if (dtype_of(a) == FLOAT32) *(float *)a->data = (float)value;
    else *(double *)a->data = value;
}

static double read_real(array a) { return dtype_of(a) == FLOAT32 ? *(const float *)a->data : *(const double *)a->data; }

static bool weighs_classes(array weight, enum dtype dtype, const struct class_job *job) {
    return !weight || (dtype_of(weight) == dtype && has_shape(weight, 1, &job->classes) && is_contiguous(weight));
}

/* The losses of a job, reduced. */
static void reduce_losses(const struct class_job *job, int reduction, array loss) {
    double total, total_weight;
    void *losses = reduction == NONE ? loss->data : NULL;
    if (dtype_of(loss) == FLOAT32) losses_of_targets_f32(job, losses, &total, &total_weight);
    else losses_of_targets_f64(job, losses, &total, &total_weight);
    if (reduction != NONE) write_real(loss, reduction == MEAN ? total / total_weight : total);
}

/* Let the job know the gradient of each loss. */
static void read_gradient(array grad, int reduction, struct class_job *job) {
    if (reduction == NONE) {
        job->gradients = grad->data;
        return;
    }
    job->gradient = read_real(grad);
    if (reduction == MEAN)
        job->gradient /= dtype_of(grad) == FLOAT32 ? weight_of_targets_f32(job) : weight_of_targets_f64(job);
}

int class_nll(uintptr_t input, uintptr_t target, uintptr_t weight, int64_t ignored, int reduction, uintptr_t loss) {
    array x = ARRAY(input), t = ARRAY(target), w = ARRAY(weight), l = ARRAY(loss);
    enum dtype dtype = dtype_of(x);
    if (dtype != FLOAT32 && dtype != FLOAT64) return WRONG_DTYPE;
    struct class_job job = {.x = x->data, .weight = w ? w->data : NULL};
    int status = read_targets(x, t, ignored, &job);
    if (status) return status;
    if (!weighs_classes(w, dtype, &job) || !is_of_losses(l, dtype, t, reduction)) return WRONG_SHAPE;
    reduce_losses(&job, reduction, l);
    return OK;
}

int class_nll_backward(uintptr_t grad, uintptr_t target, uintptr_t weight, int64_t ignored, int reduction,
                       uintptr_t result) {
    array g = ARRAY(grad), t = ARRAY(target), w = ARRAY(weight), y = ARRAY(result);
    enum dtype dtype = dtype_of(y);
    if (dtype != FLOAT32 && dtype != FLOAT64) return WRONG_DTYPE;
    struct class_job job = {.weight = w ? w->data : NULL};
    int status = read_targets(y, t, ignored, &job);
    if (status) return status;
    if (!weighs_classes(w, dtype, &job) || !is_of_losses(g, dtype, t, reduction)) return WRONG_SHAPE;
    memset(y->data, 0, (size_t)count_of(y) * size_of(dtype));
    read_gradient(g, reduction, &job);
    if (dtype == FLOAT32) scatter_shares_f32(&job, (float *)y->data);
    else scatter_shares_f64(&job, (double *)y->data);
    return OK;
}

/* Run one task over rows, or another over panels of `lanes` * 4 columns. */
static void over_scores(struct class_job *job, ssize_t lanes, ssize_t cost, range_task rows, range_task panels) {
    ssize_t panel = 4 * lanes, count = (job->inner + panel - 1) / panel;
    if (job->inner == 1) parallel_for(job->samples, grain_for(cost * job->classes), rows, job);
    else parallel_for(job->samples * count, grain_for(cost * job->classes * panel), panels, job);
}

int class_cross_entropy(uintptr_t input, uintptr_t target, int64_t ignored, int reduction, uintptr_t loss,
                        uintptr_t logsumexp) {
    array x = ARRAY(input), t = ARRAY(target), l = ARRAY(loss), s = ARRAY(logsumexp);
    enum dtype dtype = dtype_of(x);
    if (dtype != FLOAT32 && dtype != FLOAT64) return WRONG_DTYPE;
    struct class_job job = {.x = x->data, .logsumexp = s->data};
    int status = read_targets(x, t, ignored, &job);
    if (status) return status;
    if (!is_of_losses(l, dtype, t, reduction) || !is_of_losses(s, dtype, t, NONE)) return WRONG_SHAPE;
    if (dtype == FLOAT32) over_scores(&job, LANES_f32, 3, logsumexp_rows_f32, logsumexp_panels_f32);
    else over_scores(&job, LANES_f64, 6, logsumexp_rows_f64, logsumexp_panels_f64);
    reduce_losses(&job, reduction, l);
    return OK;
}

int class_cross_entropy_backward(uintptr_t grad, uintptr_t input, uintptr_t logsumexp, uintptr_t target,
                                 int64_t ignored, int reduction, uintptr_t result) {
    array g = ARRAY(grad), x = ARRAY(input), s = ARRAY(logsumexp), t = ARRAY(target), y = ARRAY(result);
    enum dtype dtype = dtype_of(x);
    if (dtype != FLOAT32 && dtype != FLOAT64) return WRONG_DTYPE;
    struct class_job job = {.x = x->data, .logsumexp = s->data, .y = y->data};
    int status = read_targets(x, t, ignored, &job);
    if (status) return status;
    if (!is_of_losses(g, dtype, t, reduction) || !is_of_losses(s, dtype, t, NONE) || dtype_of(y) != dtype ||
        !same_shape(x, y) || !is_contiguous(y))
        return WRONG_SHAPE;
    if (job.classes == 0) return OK;
    read_gradient(g, reduction, &job);
    if (dtype == FLOAT32)
        over_scores(&job, LANES_f32, 3, cross_entropy_backward_rows_f32, cross_entropy_backward_panels_f32);
    else over_scores(&job, LANES_f64, 6, cross_entropy_backward_rows_f64, cross_entropy_backward_panels_f64);
    return OK;
}
