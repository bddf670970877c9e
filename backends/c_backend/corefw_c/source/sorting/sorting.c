/* Sorting along a dimension, and what needs a part of the order: the first k, the k-th, medians, the most frequent. */
#include "core/array.h"
#include "kernels.h"
#include "sorting/keys.h"
#include "core/memory.h"
#include "core/threads.h"

#include <stdatomic.h>
#include <string.h>

enum {
    RADIX = 64,       /* the items from which sorting by bytes is faster than merging */
    SHARED = 1 << 16, /* the items that are worth two threads */
    FEW = 128,        /* the most items that are bounded by the least of parts of a row */
    GROUP = 16        /* the keys that are compared with a bound at a time */
};

/* Rows of n elements of a contiguous array, `inner` apart, and what is asked of them: the first k in order, or one. */
struct rows {
    enum dtype dtype;
    ssize_t itemsize, n, inner, k;
    bool descending, has_nan;
    uint64_t nan;  /* its key */
    int key_bytes; /* the last ones, in which keys differ */
    enum rank rank;
    const char *x;
    char *values;
    int64_t *indices;
    atomic_int failed;
};

#define GATHER(TYPE)                                                                                        \
    for (ssize_t i = begin; i < end; i++)                                                                   \
        ((TYPE *)values)[i * step] = ((const TYPE *)x)[(ssize_t)INDEX(job.items[i]) * step]

/* -- keys of up to 32 bits: key and index make one number -- */
#define OF_ITEM(name) narrow_##name
#define ITEM uint64_t
#define WORD uint32_t
#define KEY(item) ((uint32_t)((item) >> 32))
#define INDEX(item) ((uint32_t)(item))
static inline ITEM narrow_item(uint32_t key, ssize_t index) { return (uint64_t)key << 32 | (uint32_t)index; }
#include "sorting/sort_items.inc"
#include "sorting/sort_rows.inc"
#undef OF_ITEM
#undef ITEM
#undef WORD
#undef KEY
#undef INDEX

/* -- keys of 64 bits -- */
struct wide_item { uint64_t key, index; };
#define OF_ITEM(name) wide_##name
#define ITEM struct wide_item
#define WORD uint64_t
#define KEY(item) ((item).key)
#define INDEX(item) ((item).index)
static inline ITEM wide_item(uint64_t key, ssize_t index) { return (ITEM){key, (uint64_t)index}; }
#include "sorting/sort_items.inc"
#include "sorting/sort_rows.inc"

int sort_along(uintptr_t input, int dim, int descending, int rank, intptr_t k, uintptr_t values, uintptr_t indices) {
    if (!WRITABLE(values, indices)) return READ_ONLY;
    array x = ARRAY(input), v = ARRAY(values), at = ARRAY(indices);
    if (dim < 0 || dim >= x->ndim || !is_contiguous(x) || !is_contiguous(v) || !is_contiguous(at)) return WRONG_SHAPE;
    struct rows rows = {.dtype = dtype_of(x), .n = x->shape[dim], .inner = 1, .k = k, .descending = descending,
                        .rank = (enum rank)rank, .x = x->data, .values = v->data, .indices = (int64_t *)at->data};
    if (dtype_of(v) != rows.dtype || dtype_of(at) != INT64 || !has_keys(rows.dtype)) return WRONG_DTYPE;
    rows.itemsize = (ssize_t)size_of(rows.dtype);
    rows.has_nan = key_of_nan(rows.dtype, &rows.nan);
    if (rows.n >= INT32_MAX) return UNSUPPORTED;
    if (rank == RANK_ALL ? k < 0 || k > rows.n : rows.n < 1 || (rank == RANK_KTH && (k < 0 || k >= rows.n)))
        return WRONG_SHAPE;
    ssize_t outer = 1;
    for (int i = 0; i < dim; i++) outer *= x->shape[i];
    for (int i = dim + 1; i < x->ndim; i++) rows.inner *= x->shape[i];
    ssize_t count = outer * rows.inner, results = count * (rank == RANK_ALL ? k : 1);
    if (count_of(v) != results || count_of(at) != results) return WRONG_SHAPE;
    if (!results || !rows.n) return OK;
    bool narrow = has_narrow_keys(x);
    rows.key_bytes = narrow ? sizeof(uint32_t) : sizeof(uint64_t);
    if (rows.dtype == FLOAT16 || rows.dtype == BFLOAT16) rows.key_bytes = sizeof(uint16_t);
    range_task task = narrow ? narrow_work_on_rows : wide_work_on_rows;
    if (count < 4 && rows.n >= SHARED) task(&rows, 0, count); /* the threads share each row */
    else parallel_for(count, grain_for(16 * rows.n), task, &rows);
    return atomic_load(&rows.failed);
}
