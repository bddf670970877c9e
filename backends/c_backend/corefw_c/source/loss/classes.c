/* Losses of class indices: the negative log-likelihood and the cross entropy, with their gradients. */
#include "core/array.h"
#include "kernels.h"
#include "core/lanes.h"
#include "core/memory.h"
#include "core/sizes.h"
#include "core/threads.h"
#include "core/widening.h"

#include <stdatomic.h>
#include <string.h>

enum { BUNDLE = 8 };           /* the most rows whose logarithms are taken at once */
enum { WIDENED = 8192 };       /* halves of a bundle, unless a row has more */
enum { SUMMED_IN_TURN = 128 }; /* losses */
/* Scores x and their gradients y are [samples][classes][inner], targets and what belongs to them [samples][inner]. x and y
 * may be of a half type, all others then are of float. */
struct class_job {
    ssize_t samples, classes, inner;
    int64_t *target; /* to be released */
    int64_t ignored;
    const void *x, *weight; /* a weight per class, or NULL */
    void *greatest, *total; /* score of each sample, and sum of its exponentials relative to that */
    void *logarithm, *y;    /* of the sum; NULL where there is none */
    const void *gradients;  /* of each loss; or NULL, and all have `gradient` */
    double gradient;
    struct half half;
    float *vectors; /* weight and gradients, if they are of a half type; to be released */
    atomic_bool no_memory;
};

struct class_totals {
    double loss, weight;
};

static inline ssize_t bundle_of(const struct class_job *job) {
    ssize_t n = job->classes;
    return !job->half.widen || n <= WIDENED / BUNDLE ? BUNDLE : n <= WIDENED ? WIDENED / n : 1;
}

#define TEMPLATE "reduction/row_sums.inc"
#include "core/each_real.h"
#define TEMPLATE "core/exponentials.inc"
#include "core/each_real.h"
#define TEMPLATE "loss/classes.inc"
#include "core/each_real.h"

/* Read sizes from scores of shape (N, C, *) or (C,) and targets of shape (N, *) or (). */
static int read_sizes(array scores, array target, struct class_job *job) {
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
    return OK;
}

/* Copy the targets and check the copy's classes, as another thread may write to the array meanwhile. */
static int read_targets(array target, int64_t ignored, struct class_job *job) {
    ssize_t n = count_of(target);
    bool wrong = job->classes == 0 && n > 0;
    job->ignored = ignored;
    job->target = allocate_items(n, sizeof *job->target);
    if (!job->target) return NO_MEMORY;
    memcpy(job->target, target->data, (size_t)n * sizeof *job->target);
    __asm__("" ::: "memory"); /* what is checked is read from the copy */
    for (ssize_t i = 0; i < n; i++)
        wrong |= (job->target[i] != ignored) & ((uint64_t)job->target[i] >= (uint64_t)job->classes);
    if (wrong) release(job->target);
    return wrong ? OUT_OF_RANGE : OK;
}

/* Whether an array is dense, of this dtype, and of the shape of the losses. */
static bool is_of_losses(array a, enum dtype dtype, array target, int reduction) {
    return dtype_of(a) == dtype && is_contiguous(a) && (reduction == NONE ? same_shape(a, target) : a->ndim == 0);
}

static bool weighs_classes(array weight, enum dtype dtype, const struct class_job *job) {
    return !weight || (dtype_of(weight) == dtype && has_shape(weight, 1, &job->classes) && is_contiguous(weight));
}

/* Let the job know weights of the classes and gradients of the losses, where there are any: halves as floats. */
static int read_vectors(array weight, array gradients, struct class_job *job) {
    ssize_t weights = weight ? count_of(weight) : 0, losses = gradients ? count_of(gradients) : 0;
    if (!job->half.widen) {
        job->weight = weight ? weight->data : NULL, job->gradients = gradients ? gradients->data : NULL;
        return OK;
    }
    job->vectors = allocate_items(size_plus(weights, losses), sizeof(float));
    if (!job->vectors) return NO_MEMORY;
    if (weight) job->weight = rows_at_f32(job->half, weight->data, 0, 1, weights, weights, job->vectors);
    if (gradients)
        job->gradients = rows_at_f32(job->half, gradients->data, 0, 1, losses, losses, job->vectors + weights);
    return OK;
}

/* The losses of a job, reduced. */
static int reduce_losses(const struct class_job *job, int reduction, array loss) {
    ssize_t count = job->samples * job->inner;
    bool narrowed = job->half.narrow && reduction == NONE;
    void *losses = narrowed ? allocate_items(count, sizeof(float)) : reduction == NONE ? loss->data : NULL;
    if (narrowed && !losses) return NO_MEMORY;
    struct class_totals totals = dtype_of(loss) == FLOAT64 ? losses_of_targets_f64(job, 0, count, losses)
                                                           : losses_of_targets_f32(job, 0, count, losses);
    if (reduction != NONE) write_real(loss, reduction == MEAN ? totals.loss / totals.weight : totals.loss);
    if (narrowed) {
        job->half.narrow(count, losses, loss->data);
        release(losses);
    }
    return OK;
}

/* Let the job know the one gradient of all losses, after their weights. */
static void read_gradient(array grad, int reduction, struct class_job *job) {
    if (reduction == NONE) return;
    job->gradient = read_real(grad);
    if (reduction == MEAN)
        job->gradient /= dtype_of(grad) == FLOAT64 ? weight_of_targets_f64(job) : weight_of_targets_f32(job);
}

static void release_vectors(struct class_job *job) {
    release(job->vectors);
    release(job->target);
}

int class_nll(uintptr_t input, uintptr_t target, uintptr_t weight, int64_t ignored, int reduction, uintptr_t loss) {
    if (!WRITABLE(loss)) return READ_ONLY;
    array x = ARRAY(input), t = ARRAY(target), w = ARRAY(weight), l = ARRAY(loss);
    enum dtype dtype = dtype_of(x), wide = computed_in(dtype);
    if (wide != FLOAT32 && wide != FLOAT64) return WRONG_DTYPE;
    struct class_job job = {.x = x->data, .half = half_of(dtype)};
    int status = read_sizes(x, t, &job);
    if (status) return status;
    if (!weighs_classes(w, dtype, &job) || !is_of_losses(l, dtype, t, reduction)) return WRONG_SHAPE;
    if ((status = read_targets(t, ignored, &job))) return status;
    status = read_vectors(w, NULL, &job);
    if (status == OK) status = reduce_losses(&job, reduction, l);
    release_vectors(&job);
    return status;
}

int class_nll_backward(uintptr_t grad, uintptr_t target, uintptr_t weight, int64_t ignored, int reduction,
                       uintptr_t result) {
    if (!WRITABLE(result)) return READ_ONLY;
    array g = ARRAY(grad), t = ARRAY(target), w = ARRAY(weight), y = ARRAY(result);
    enum dtype dtype = dtype_of(y), wide = computed_in(dtype);
    if (wide != FLOAT32 && wide != FLOAT64) return WRONG_DTYPE;
    struct class_job job = {.y = y->data, .half = half_of(dtype)};
    int status = read_sizes(y, t, &job);
    if (status) return status;
    if (!weighs_classes(w, dtype, &job) || !is_of_losses(g, dtype, t, reduction)) return WRONG_SHAPE;
    if ((status = read_targets(t, ignored, &job))) return status;
    status = read_vectors(w, reduction == NONE ? g : NULL, &job);
    if (status == OK) {
        memset(y->data, 0, (size_t)count_of(y) * size_of(dtype));
        read_gradient(g, reduction, &job);
        (wide == FLOAT32 ? scatter_shares_f32 : scatter_shares_f64)(&job);
    }
    release_vectors(&job);
    return status;
}

/* Run one task over rows, or another over panels of `lanes` * 4 columns. */
static int over_scores(struct class_job *job, ssize_t lanes, ssize_t cost, range_task rows, range_task panels) {
    ssize_t panel = 4 * lanes, count = (job->inner + panel - 1) / panel;
    if (job->inner == 1) parallel_for(job->samples, grain_for(cost * job->classes), rows, job);
    else parallel_for(job->samples * count, grain_for(cost * job->classes * panel), panels, job);
    return job->no_memory ? NO_MEMORY : OK;
}

/* Let the job know where the greatest scores and the sums lie, an array of shape (2, *) for samples of shape (*). */
static bool read_normalizer(array normalizer, enum dtype dtype, array target, struct class_job *job) {
    ssize_t shape[MAX_DIMS] = {2}, samples = job->samples * job->inner;
    for (int i = 0; i < target->ndim; i++) shape[i + 1] = target->shape[i];
    if (dtype_of(normalizer) != dtype || !has_shape(normalizer, target->ndim + 1, shape) || !is_contiguous(normalizer))
        return false;
    job->greatest = normalizer->data;
    job->total = normalizer->data + samples * (ssize_t)size_of(dtype);
    return true;
}

int class_cross_entropy(uintptr_t input, uintptr_t target, int64_t ignored, int reduction, uintptr_t loss,
                        uintptr_t normalizer) {
    if (!WRITABLE(loss, normalizer)) return READ_ONLY;
    array x = ARRAY(input), t = ARRAY(target), l = ARRAY(loss);
    enum dtype dtype = dtype_of(x), wide = computed_in(dtype);
    if (wide != FLOAT32 && wide != FLOAT64) return WRONG_DTYPE;
    struct class_job job = {.x = x->data, .half = half_of(dtype)};
    int status = read_sizes(x, t, &job);
    if (status) return status;
    if (!is_of_losses(l, dtype, t, reduction) || !read_normalizer(ARRAY(normalizer), wide, t, &job)) return WRONG_SHAPE;
    if ((status = read_targets(t, ignored, &job))) return status;
    bool in_losses = reduction == NONE && wide == dtype;
    job.logarithm = in_losses ? (void *)l->data : allocate_items(job.samples * job.inner, size_of(wide));
    if (!job.logarithm) status = NO_MEMORY;
    else if (wide == FLOAT32) status = over_scores(&job, LANES_f32, 3, normalizer_rows_f32, normalizer_panels_f32);
    else status = over_scores(&job, LANES_f64, 6, normalizer_rows_f64, normalizer_panels_f64);
    if (status == OK) status = reduce_losses(&job, reduction, l);
    if (!in_losses) release(job.logarithm);
    release(job.target);
    return status;
}

int class_cross_entropy_backward(uintptr_t grad, uintptr_t input, uintptr_t normalizer, uintptr_t target,
                                 int64_t ignored, int reduction, uintptr_t result) {
    if (!WRITABLE(result)) return READ_ONLY;
    array g = ARRAY(grad), x = ARRAY(input), t = ARRAY(target), y = ARRAY(result);
    enum dtype dtype = dtype_of(x), wide = computed_in(dtype);
    if (wide != FLOAT32 && wide != FLOAT64) return WRONG_DTYPE;
    struct class_job job = {.x = x->data, .y = y->data, .half = half_of(dtype)};
    int status = read_sizes(x, t, &job);
    if (status) return status;
    if (!is_of_losses(g, dtype, t, reduction) || !read_normalizer(ARRAY(normalizer), wide, t, &job) ||
        dtype_of(y) != dtype || !same_shape(x, y) || !is_contiguous(y))
        return WRONG_SHAPE;
    if ((status = read_targets(t, ignored, &job))) return status;
    status = read_vectors(NULL, reduction == NONE ? g : NULL, &job);
    if (status == OK) {
        read_gradient(g, reduction, &job);
        status = wide == FLOAT32 ? over_scores(&job, LANES_f32, 3, cross_entropy_backward_rows_f32,
                                               cross_entropy_backward_panels_f32)
                                 : over_scores(&job, LANES_f64, 6, cross_entropy_backward_rows_f64,
                                               cross_entropy_backward_panels_f64);
    }
    release_vectors(&job);
    return status;
}
