/* Index arrays as positions in memory. */
#include "positions.h"
#include "memory.h"
#include "strided.h"
#include "threads.h"

#include <stdatomic.h>
#include <string.h>

bool common_shape(const uintptr_t *indices, int count, int *ndim, ssize_t *shape) {
    *ndim = 0;
    for (int k = 0; k < count; k++)
        if (ARRAY(indices[k])->ndim > *ndim) *ndim = ARRAY(indices[k])->ndim;
    for (int i = 0; i < *ndim; i++) {
        shape[i] = 1;
        for (int k = 0; k < count; k++) {
            array a = ARRAY(indices[k]);
            int at = i - (*ndim - a->ndim);
            if (at < 0 || a->shape[at] == 1) continue;
            if (shape[i] != 1 && shape[i] != a->shape[at]) return false;
            shape[i] = a->shape[at];
        }
    }
    return true;
}

bool all_within(ssize_t n, const char *numbers, ssize_t step, ssize_t size) {
    int64_t wrong = 0;
    if (step == sizeof(int64_t)) {
        const unaligned_position *at = (const void *)numbers;
        for (ssize_t i = 0; i < n; i++) wrong |= at[i] | (size - 1 - at[i]); /* negative if either is */
    } else
        for (ssize_t i = 0; i < n; i++) {
            int64_t at = *(const unaligned_position *)(numbers + i * step);
            wrong |= at | (size - 1 - at);
        }
    return wrong >= 0;
}

struct job {
    const int64_t *at;
    int64_t *sums;
    ssize_t size, step;
    bool first, from_end;
    atomic_bool outside; /* whether one is not in 0 <= i < size, or is not at all a position */
};

static void check(void *context, ssize_t begin, ssize_t end) {
    struct job *job = context;
    if (!all_within(end - begin, (const char *)(job->at + begin), sizeof *job->at, job->size)) job->outside = true;
}

static void add(void *context, ssize_t begin, ssize_t end) {
    struct job *job = context;
    int64_t size = job->size, back = job->from_end ? size : 0, wrong = 0;
    for (ssize_t i = begin; i < end; i++) {
        int64_t at = job->at[i];
        at += at < 0 ? back : 0;
        wrong |= at | (size - 1 - at);
        job->sums[i] = (job->first ? 0 : job->sums[i]) + (int64_t)((uint64_t)at * (uint64_t)job->step);
    }
    if (wrong < 0) job->outside = true;
}

enum status find_positions(array x, int dim, const uintptr_t *indices, int count, bool from_end,
                           struct positions *found) {
    int ndim;
    ssize_t shape[MAX_DIMS], strides[MAX_DIMS], n = 1;
    *found = (struct positions){.step = 1};
    if (count < 1 || dim < 0 || dim + count > x->ndim || !common_shape(indices, count, &ndim, shape))
        return WRONG_SHAPE;
    for (int i = ndim - 1; i >= 0; n *= shape[i--]) strides[i] = n * (ssize_t)sizeof(int64_t);
    found->count = n;
    int64_t *converted = NULL;
    for (int k = 0; k < count; k++) {
        array a = ARRAY(indices[k]);
        enum dtype type = dtype_of(a);
        struct job job = {.at = (const void *)a->data,
                          .size = x->shape[dim + k],
                          .step = x->strides[dim + k],
                          .first = k == 0,
                          .from_end = from_end};
        if (type != INT64 && type != INT32) return WRONG_DTYPE;
        if (n == 0) continue;
        bool direct =
            type == INT64 && is_contiguous(a) && count_of(a) == n && (uintptr_t)a->data % sizeof(int64_t) == 0;
        if (direct && count == 1) {
            parallel_for(n, grain_for(1), check, &job);
            if (!job.outside) {
                found->at = job.at, found->step = job.step;
                return OK;
            }
            if (!from_end) return OUT_OF_RANGE;
            job.outside = false;
        }
        if (!found->made) found->at = found->made = allocate_items(n, sizeof(int64_t));
        if (!found->made) return NO_MEMORY;
        if (!direct) {
            ssize_t given[MAX_DIMS];
            for (int i = 0; i < ndim; i++) {
                int at = i - (ndim - a->ndim);
                given[i] = at < 0 || a->shape[at] == 1 ? 0 : a->strides[at];
            }
            if (!converted) converted = allocate_items(n, sizeof(int64_t));
            if (!converted) {
                release(found->made);
                return NO_MEMORY;
            }
            convert_strided(ndim, shape, (char *)converted, strides, INT64, a->data, given, type);
            job.at = converted;
        }
        job.sums = found->made;
        parallel_for(n, grain_for(2), add, &job);
        if (job.outside) {
            release(converted), release(found->made);
            return OUT_OF_RANGE;
        }
    }
    release(converted);
    return OK;
}
