/* Connectionist temporal classification: the loss of labels whose places in time are not known, and its gradient. */
#include "core/array.h"
#include "kernels.h"
#include "core/lanes.h"
#include "core/memory.h"
#include "core/sizes.h"
#include "core/threads.h"
#include "core/widening.h"

#include <string.h>

static const double IMPOSSIBLE = -1e30; /* the logarithm that stands for that of 0 (corefw/declarations/alignment.py) */
enum { MARGIN = 16 };                   /* elements beside the states of a row, a register at least */
enum { STEP_COST = 64 };                /* of one state at one time */
enum { ROWS_OF_COSTS = 4, ROWS_OF_GRADIENT = 6 }; /* of a sample's scratch memory; those of each time come besides, and
                                                     scores of half types, and their gradients, at one time */
enum { GATHERED = 64 }; /* scores of half types that are widened at a time */

/* Scores are [times][samples][classes]. A target of n labels has 2 n + 1 states: blanks and, at odd places, labels. */
struct alignment_job {
    ssize_t times, samples, classes, labels, states;
    ssize_t row, memory;                /* elements between rows of states, margins among them, and between samples */
    int64_t *targets, *lengths, *sizes; /* one block, to be released: labels, times and numbers of labels of the samples */
    int64_t blank;
    bool zero_infinity;
    const void *x, *gradient;
    void *y;       /* the losses, or the gradient of x */
    void *scratch; /* rows of each sample */
    struct half half; /* of x, gradient and y */
};

#define TEMPLATE "loss/alignment.inc"
#include "core/each_real.h"

/* Copy labels and lengths and check the copies, as another thread may write to the arrays meanwhile. */
static int read_labels(array targets, array lengths, array sizes, struct alignment_job *job) {
    ssize_t n = job->samples, count = size_times(n, job->labels);
    job->targets = allocate_items(size_plus(count, size_times(2, n)), sizeof(int64_t));
    if (!job->targets) return NO_MEMORY;
    job->lengths = job->targets + count;
    job->sizes = job->lengths + n;
    memcpy(job->targets, targets->data, (size_t)count * sizeof(int64_t));
    memcpy(job->lengths, lengths->data, (size_t)n * sizeof(int64_t));
    memcpy(job->sizes, sizes->data, (size_t)n * sizeof(int64_t));
    __asm__("" ::: "memory"); /* what is checked is read from the copies */
    bool wrong = (uint64_t)job->blank >= (uint64_t)job->classes;
    for (ssize_t i = 0; i < count; i++) wrong |= (uint64_t)job->targets[i] >= (uint64_t)job->classes;
    for (ssize_t i = 0; i < n; i++)
        wrong |= (uint64_t)job->lengths[i] > (uint64_t)job->times || (uint64_t)job->sizes[i] > (uint64_t)job->labels;
    if (wrong) release(job->targets);
    return wrong ? OUT_OF_RANGE : OK;
}

/* Fill a job from scores of shape (T, N, C), targets (N, S) and lengths (N), and run it over the samples. */
static int align(array x, array targets, array lengths, array sizes, ssize_t rows, range_task f32, range_task f64,
                 struct alignment_job *job) {
    enum dtype dtype = computed_in(dtype_of(x));
    if (dtype != FLOAT32 && dtype != FLOAT64) return WRONG_DTYPE;
    if (x->ndim != 3 || targets->ndim != 2 || !is_contiguous(x) || !is_contiguous(targets)) return WRONG_SHAPE;
    job->times = x->shape[0], job->samples = x->shape[1], job->classes = x->shape[2], job->labels = targets->shape[1];
    if (targets->shape[0] != job->samples || !has_shape(lengths, 1, &job->samples) || !is_contiguous(lengths) ||
        !has_shape(sizes, 1, &job->samples) || !is_contiguous(sizes))
        return WRONG_SHAPE;
    if (dtype_of(targets) != INT64 || dtype_of(lengths) != INT64 || dtype_of(sizes) != INT64) return WRONG_DTYPE;
    job->x = x->data, job->half = half_of(dtype_of(x));
    job->states = size_plus(size_times(2, job->labels), 1);
    job->row = size_plus(job->states, 3 * MARGIN);
    int status = read_labels(targets, lengths, sizes, job);
    if (status) return status;
    job->memory = size_plus(size_times(rows, job->row), job->half.widen ? size_times(2, job->classes) : 0);
    job->scratch = allocate_items(size_times(job->samples, job->memory), size_of(dtype));
    if (job->scratch) {
        ssize_t cost = size_times(size_times(STEP_COST, job->states), job->times);
        parallel_for(job->samples, grain_for(cost), dtype == FLOAT32 ? f32 : f64, job);
    }
    status = job->scratch ? OK : NO_MEMORY;
    release(job->scratch);
    release(job->targets);
    return status;
}

int ctc_costs(uintptr_t log_probs, uintptr_t targets, uintptr_t input_lengths, uintptr_t target_lengths, int64_t blank,
              int zero_infinity, uintptr_t result) {
    if (!WRITABLE(result)) return READ_ONLY;
    array x = ARRAY(log_probs), y = ARRAY(result);
    if (x->ndim != 3 || !has_shape(y, 1, x->shape + 1) || !is_contiguous(y)) return WRONG_SHAPE;
    if (dtype_of(y) != dtype_of(x)) return WRONG_DTYPE;
    struct alignment_job job = {.blank = blank, .zero_infinity = zero_infinity, .y = y->data};
    return align(x, ARRAY(targets), ARRAY(input_lengths), ARRAY(target_lengths), ROWS_OF_COSTS, alignment_costs_f32,
                 alignment_costs_f64, &job);
}

int ctc_costs_backward(uintptr_t grad, uintptr_t log_probs, uintptr_t targets, uintptr_t input_lengths,
                       uintptr_t target_lengths, int64_t blank, int zero_infinity, uintptr_t result) {
    if (!WRITABLE(result)) return READ_ONLY;
    array g = ARRAY(grad), x = ARRAY(log_probs), y = ARRAY(result);
    if (x->ndim != 3 || !same_shape(x, y) || !is_contiguous(y) || !has_shape(g, 1, x->shape + 1) || !is_contiguous(g))
        return WRONG_SHAPE;
    if (dtype_of(y) != dtype_of(x) || dtype_of(g) != dtype_of(x)) return WRONG_DTYPE;
    struct alignment_job job = {.blank = blank, .zero_infinity = zero_infinity, .y = y->data, .gradient = g->data};
    return align(x, ARRAY(targets), ARRAY(input_lengths), ARRAY(target_lengths),
                 size_plus(x->shape[0], ROWS_OF_GRADIENT), alignment_gradient_f32, alignment_gradient_f64, &job);
}
