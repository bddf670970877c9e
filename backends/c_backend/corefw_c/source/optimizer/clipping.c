/* What the clipping of gradients needs: the common norm of a list of arrays, and their scaling in place. */
#include "kernels.h"
#include "core/memory.h"
#include "optimizer/parameters.h"
#include "core/threads.h"
#include "core/widening.h"

#include <math.h>

enum norm { EUCLIDEAN, MODULI, LARGEST, SMALLEST, NONZEROS, POWERS };

static enum norm norm_of(double order) {
    return order == 2 ? EUCLIDEAN : order == 1 ? MODULI : order == INFINITY ? LARGEST : order == -INFINITY ? SMALLEST
         : order == 0 ? NONZEROS : POWERS;
}

/* What an element of modulus x counts. */
static inline double term(enum norm norm, double x, double order) {
    return norm == EUCLIDEAN ? x * x : norm == NONZEROS ? (double)(x != 0) : norm == POWERS ? pow(x, order) : x;
}

/* Two contributions as one; NaN if one is. */
static inline double join(enum norm norm, double a, double b) {
    if (norm == LARGEST) return a > b || a != a ? a : b;
    if (norm == SMALLEST) return a < b || a != a ? a : b;
    return a + b;
}

enum { PARTS = 32 }; /* contributions that are joined side by side */

static inline double neutral(enum norm norm) { return norm == SMALLEST ? INFINITY : 0; }

/* The norm that a contribution amounts to. */
static double root(enum norm norm, double x, double order) {
    return norm == EUCLIDEAN ? sqrt(x) : norm == POWERS ? pow(x, 1 / order) : x;
}

#define TEMPLATE "optimizer/clipping.inc"
#include "core/each_real.h"

enum { BLOCK = 4096 }; /* elements whose contribution is found at once, however many threads there are */

struct norm_job {
    const struct parameters *all;
    enum norm norm;
    double order, *contributions; /* of the blocks of all elements, a parameter's own last block ending with it */
    ssize_t *first_block;         /* of each parameter */
};

static void contributions_of(void *context, ssize_t begin, ssize_t end) {
    const struct norm_job *job = context;
    const struct half half = half_of(job->all->dtype);
    const struct parameter *items = job->all->items;
    ssize_t i = 0;
    for (ssize_t block = begin; block < end; block++) {
        while (job->first_block[i + 1] <= block) i++;
        ssize_t start = (block - job->first_block[i]) * BLOCK, rest = items[i + 1].begin - items[i].begin - start;
        ssize_t n = rest < BLOCK ? rest : BLOCK;
        if (half.widen) {
            float floats[BLOCK];
            half.widen(n, (const uint16_t *)items[i].data[0] + start, floats);
            job->contributions[block] = contribution_f32(floats, n, job->norm, job->order);
        } else if (job->all->dtype == FLOAT32)
            job->contributions[block] = contribution_f32((const float *)items[i].data[0] + start, n, job->norm, job->order);
        else
            job->contributions[block] = contribution_f64((const double *)items[i].data[0] + start, n, job->norm, job->order);
    }
}

/* The norm of the norms of all arrays, each rounded to the type in which theirs is computed. */
static double combined(const struct norm_job *job) {
    double total = neutral(job->norm);
    for (ssize_t i = 0; i < job->all->count; i++) {
        double x = neutral(job->norm);
        for (ssize_t block = job->first_block[i]; block < job->first_block[i + 1]; block++)
            x = join(job->norm, x, job->contributions[block]);
        x = root(job->norm, x, job->order);
        if (computed_in(job->all->dtype) == FLOAT32) x = (double)(float)x;
        total = join(job->norm, total, term(job->norm, x, job->order));
    }
    return root(job->norm, total, job->order);
}

int total_norm(uintptr_t tensors, double order, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    array y = ARRAY(output);
    struct parameters all;
    enum status status = open_parameters(&all, 1, &tensors, 0);
    if (status) return status;
    struct half half = half_of(all.dtype);
    if (all.dtype != FLOAT32 && all.dtype != FLOAT64 && !half.narrow) {
        close_parameters(&all);
        return WRONG_DTYPE;
    }
    struct norm_job job = {.all = &all, .norm = norm_of(order), .order = order};
    ssize_t blocks = 0;
    bool empty = all.count == 0;
    job.first_block = allocate_items(all.count + 1, sizeof *job.first_block);
    for (ssize_t i = 0; job.first_block && i <= all.count; i++) {
        job.first_block[i] = blocks;
        if (i == all.count) break;
        ssize_t n = all.items[i + 1].begin - all.items[i].begin;
        empty |= n == 0;
        blocks += (n + BLOCK - 1) / BLOCK;
    }
    job.contributions = allocate_items(blocks, sizeof *job.contributions);
    if (!job.first_block || !job.contributions) status = NO_MEMORY;
    else if (dtype_of(y) != all.dtype) status = WRONG_DTYPE;
    else if (y->ndim != 0 || all.count == 0 || (empty && (order < 0 || order == INFINITY))) status = WRONG_SHAPE;
    if (!status) {
        parallel_for(blocks, grain_for(BLOCK * (job.norm == POWERS ? 20 : 1)), contributions_of, &job);
        double norm = combined(&job);
        float single = (float)norm;
        if (half.narrow) half.narrow(1, &single, y->data);
        else if (all.dtype == FLOAT32) *(float *)y->data = single;
        else *(double *)y->data = norm;
    }
    release(job.contributions);
    release(job.first_block);
    close_parameters(&all);
    return status;
}

int scale_step(uintptr_t tensors, uintptr_t factor) {
    array f = ARRAY(factor);
    struct parameters all;
    if (count_of(f) != 1) return WRONG_SHAPE;
    struct half half = half_of(dtype_of(f));
    if (dtype_of(f) != FLOAT32 && dtype_of(f) != FLOAT64 && !half.widen) return WRONG_DTYPE;
    enum status status = open_parameters(&all, 1, &tensors, -1);
    if (status) return status;
    float single;
    if (half.widen) half.widen(1, f->data, &single);
    else if (dtype_of(f) == FLOAT32) single = *(const float *)f->data;
    double value = dtype_of(f) == FLOAT64 ? *(const double *)f->data : (double)single;
    update_parameters(&all, (update[]){scale_f32, scale_f64}, &value, 2);
    close_parameters(&all);
    return OK;
}
