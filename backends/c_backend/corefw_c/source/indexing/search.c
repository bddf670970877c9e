/* Search in sorted arrays, membership, and runs of equal elements. */
#include "core/array.h"
#include "kernels.h"
#include "indexing/positions.h"
#include "core/memory.h"
#include "core/threads.h"
#include "core/widening.h"

enum {
    FEW = 8,    /* the elements that are compared one by one rather than searched */
    GROUP = 16, /* the values that are searched side by side, each step of all before the next */
};

struct search {
    const void *sorted, *x;
    ssize_t n, rows, per_row; /* rows of n elements, and how many values are searched in each */
    bool right;               /* or `invert` */
    int64_t *positions;
    bool *found;
};

struct runs {
    const void *x;
    const int64_t *order;
    void *values;
    int64_t *inverse, *counts;
    ssize_t n;
};

#define TYPE float
#define NUMBER float
#define READ(x) (x)
#define OF_TYPE_NAMED(name) name##_f32
#include "indexing/search.inc"
#define TYPE double
#define NUMBER double
#define READ(x) (x)
#define OF_TYPE_NAMED(name) name##_f64
#include "indexing/search.inc"
#define TYPE uint16_t
#define NUMBER float
#define READ(x) float_of_float16(x)
#define OF_TYPE_NAMED(name) name##_f16
#include "indexing/search.inc"
#define TYPE uint16_t
#define NUMBER float
#define READ(x) float_of_bfloat16(x)
#define OF_TYPE_NAMED(name) name##_bf16
#include "indexing/search.inc"
#pragma GCC diagnostic ignored "-Wtautological-compare" /* x != x means NaN, which integers never are */
#define TYPE int32_t
#define NUMBER int32_t
#define READ(x) (x)
#define OF_TYPE_NAMED(name) name##_i32
#include "indexing/search.inc"
#define TYPE int64_t
#define NUMBER int64_t
#define READ(x) (x)
#define OF_TYPE_NAMED(name) name##_i64
#include "indexing/search.inc"

/* Many values of half types are searched in floats: in sorted rows that are widened once, a part of the values at a
 * time. */
struct half_search {
    struct search job; /* whose sorted rows are floats */
    struct half half;
    bool member;
};

static void search_halves(void *context, ssize_t begin, ssize_t end) {
    enum { PART = 1024 };
    const struct half_search *all = context;
    float x[PART];
    for (ssize_t from = begin; from < end; from += PART) {
        ssize_t n = end - from < PART ? end - from : PART;
        all->half.widen(n, (const uint16_t *)all->job.x + from, x);
        struct search part = all->job;
        part.x = x - from; /* counted as before */
        (all->member ? member_f32 : search_f32)(&part, from, from + n);
    }
}

/* Give values to `task`, in floats if they are halves and many. */
static enum status run_search(const struct search *job, enum dtype dtype, ssize_t count, ssize_t grain,
                              range_task task, bool member) {
    struct half half = half_of(dtype);
    float *sorted = NULL;
    if (half.widen && count / 4 >= job->rows * job->n) {
        sorted = allocate_items(job->rows * job->n, sizeof *sorted);
        if (!sorted) return NO_MEMORY;
        half.widen(job->rows * job->n, job->sorted, sorted);
        struct half_search halves = {*job, half, member};
        halves.job.sorted = sorted;
        parallel_for(count, grain, search_halves, &halves);
    } else {
        parallel_for(count, grain, task, (void *)job);
    }
    release(sorted);
    return OK;
}

#define FUNCTIONS(name)                                                                                              \
    {[FLOAT16] = name##_f16, [BFLOAT16] = name##_bf16, [FLOAT32] = name##_f32,                                        \
     [FLOAT64] = name##_f64, [INT32] = name##_i32,     [INT64] = name##_i64}

int search_sorted(uintptr_t sequence, uintptr_t values, int right, uintptr_t positions) {
    if (!WRITABLE(positions)) return READ_ONLY;
    static const range_task tasks[NO_DTYPE + 1] = FUNCTIONS(search);
    array row = ARRAY(sequence), x = ARRAY(values), y = ARRAY(positions);
    if (!is_contiguous(row) || !is_contiguous(x) || !is_contiguous(y)) return WRONG_SHAPE;
    if (!same_shape(x, y) || row->ndim < 1) return WRONG_SHAPE;
    range_task task = tasks[dtype_of(x)];
    if (!task || dtype_of(row) != dtype_of(x) || dtype_of(y) != INT64) return WRONG_DTYPE;
    ssize_t count = count_of(x);
    struct search job = {.sorted = row->data, .x = x->data, .n = row->shape[row->ndim - 1], .rows = 1, .right = right,
                         .positions = (int64_t *)y->data};
    if (row->ndim > 1) {
        if (!has_shape(&(struct array){.ndim = x->ndim - 1, .shape = x->shape}, row->ndim - 1, row->shape))
            return WRONG_SHAPE;
        job.per_row = x->shape[x->ndim - 1];
        for (int i = 0; i < row->ndim - 1; i++) job.rows *= row->shape[i];
    }
    ssize_t steps = 4;
    for (ssize_t n = job.n; n > 0; n /= 2) steps += 4;
    return run_search(&job, dtype_of(x), count, grain_for(steps), task, false);
}

int is_member(uintptr_t elements, uintptr_t sorted, int invert, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    static const range_task tasks[NO_DTYPE + 1] = FUNCTIONS(member);
    array x = ARRAY(elements), row = ARRAY(sorted), y = ARRAY(output);
    if (!is_contiguous(row) || !is_contiguous(x) || !is_contiguous(y)) return WRONG_SHAPE;
    if (!same_shape(x, y) || row->ndim != 1) return WRONG_SHAPE;
    range_task task = tasks[dtype_of(x)];
    if (!task || dtype_of(row) != dtype_of(x) || dtype_of(y) != BOOL) return WRONG_DTYPE;
    struct search job = {.sorted = row->data, .x = x->data, .n = row->shape[0], .rows = 1, .right = invert,
                         .found = (bool *)y->data};
    return run_search(&job, dtype_of(x), count_of(x), grain_for(32), task, true);
}

int equal_runs(uintptr_t input, uintptr_t order, uintptr_t values, uintptr_t inverse, uintptr_t counts,
               uintptr_t count) {
    if (!WRITABLE(values, inverse, counts, count)) return READ_ONLY;
    typedef ssize_t (*function)(const struct runs *);
    static const function functions[NO_DTYPE + 1] = FUNCTIONS(runs);
    array x = ARRAY(input), v = ARRAY(values), all[] = {ARRAY(inverse), ARRAY(counts), ARRAY(order)};
    ssize_t n = count_of(x);
    if (!is_contiguous(x) || !is_contiguous(v) || count_of(v) != n || count_of(ARRAY(count)) != 1) return WRONG_SHAPE;
    for (int i = 0; i < 3; i++) {
        if (!all[i]) continue;
        if (!is_contiguous(all[i]) || count_of(all[i]) != n) return WRONG_SHAPE;
        if (dtype_of(all[i]) != INT64) return WRONG_DTYPE;
    }
    if (!functions[dtype_of(x)] || dtype_of(v) != dtype_of(x) || dtype_of(ARRAY(count)) != INT64) return WRONG_DTYPE;
    struct runs job = {x->data, all[2] ? (const int64_t *)all[2]->data : NULL, v->data, (int64_t *)all[0]->data,
                       (int64_t *)all[1]->data, n};
    int64_t found = functions[dtype_of(x)](&job);
    *(int64_t *)ARRAY(count)->data = found;
    return found < 0 ? OUT_OF_RANGE : OK;
}
