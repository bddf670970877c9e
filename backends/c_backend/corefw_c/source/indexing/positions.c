/* Index arrays as positions in memory. */
#include "indexing/positions.h"
#include "core/memory.h"
#include "core/strided.h"
#include "core/threads.h"

#include <stdatomic.h>

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

enum { LANES = 8 };
typedef int64_t position_lanes __attribute__((vector_size(LANES * sizeof(int64_t)), aligned(1), may_alias));

bool read_positions(ssize_t n, const int64_t *numbers, ssize_t size, bool from_end, ssize_t factor, bool first,
                    int64_t *restrict to) {
    const int64_t back = from_end ? size : 0, last = size - 1;
    position_lanes wrong = {0}; /* negative if one of the positions is, or what is left behind it */
    ssize_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        position_lanes at = *(const volatile position_lanes *)(numbers + i), *sum = (position_lanes *)(to + i);
        at += (at < 0) & back;
        wrong |= at | (last - at);
        *sum = first ? at * factor : *sum + at * factor;
    }
    for (; i < n; i++) {
        int64_t at = position_at(numbers, i);
        at += at < 0 ? back : 0;
        if (!is_within(at, size)) return false;
        to[i] = (first ? 0 : to[i]) + at * factor;
    }
    for (int lane = 0; lane < LANES; lane++)
        if (wrong[lane] < 0) return false;
    return true;
}

const int64_t *adjacent_positions(array index) {
    return dtype_of(index) == INT64 && is_contiguous(index) ? (const int64_t *)index->data : NULL;
}

struct job {
    const int64_t *given; /* the positions in one dimension, next to each other */
    int64_t *sums;
    ssize_t size, factor;
    bool first, from_end;
    atomic_bool outside; /* whether one is not in 0 <= i < size */
};

static void add(void *context, ssize_t begin, ssize_t end) {
    struct job *job = context;
    if (!read_positions(end - begin, job->given + begin, job->size, job->from_end, job->factor, job->first,
                        job->sums + begin))
        job->outside = true;
}

enum status find_positions(array x, int dim, const uintptr_t *indices, int count, bool from_end,
                           struct positions *found) {
    int ndim;
    ssize_t shape[MAX_DIMS], strides[MAX_DIMS], n = 1;
    if (count < 1 || dim < 0 || dim + count > x->ndim || !common_shape(indices, count, &ndim, shape))
        return WRONG_SHAPE;
    for (int i = ndim - 1; i >= 0; n *= shape[i--]) strides[i] = n * (ssize_t)sizeof(int64_t);
    for (int k = 0; k < count; k++)
        if (dtype_of(ARRAY(indices[k])) != INT64 && dtype_of(ARRAY(indices[k])) != INT32) return WRONG_DTYPE;
    *found = (struct positions){.count = n, .step = count == 1 ? x->strides[dim] : 1};
    if (n == 0) return OK;
    int64_t *sums = allocate_items(n, sizeof *sums), *converted = NULL;
    enum status status = sums ? OK : NO_MEMORY;
    for (int k = 0; k < count && !status; k++) {
        array a = ARRAY(indices[k]);
        struct job job = {.given = count_of(a) == n ? adjacent_positions(a) : NULL,
                          .sums = sums,
                          .size = x->shape[dim + k],
                          .factor = count == 1 ? 1 : x->strides[dim + k],
                          .first = k == 0,
                          .from_end = from_end};
        if (!job.given) {
            ssize_t given[MAX_DIMS];
            for (int i = 0; i < ndim; i++) {
                int at = i - (ndim - a->ndim);
                given[i] = at < 0 || a->shape[at] == 1 ? 0 : a->strides[at];
            }
            if (!converted) converted = allocate_items(n, sizeof(int64_t));
            if (!converted) {
                status = NO_MEMORY;
                break;
            }
            convert_strided(ndim, shape, (char *)converted, strides, INT64, a->data, given, dtype_of(a));
            job.given = converted;
        }
        parallel_for(n, grain_for(2), add, &job);
        if (job.outside) status = OUT_OF_RANGE;
    }
    release(converted);
    if (status) release(sums);
    else found->at = sums;
    return status;
}
