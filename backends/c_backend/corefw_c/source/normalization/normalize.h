/* What the normalisations and their gradients share. */
#ifndef COREFW_NORMALIZE_H
#define COREFW_NORMALIZE_H

#include "core/array.h"

/* Whether an array, which may be absent, has this dtype and is contiguous with this many elements. */
static inline bool fits(array a, enum dtype dtype, ssize_t count) {
    return !a || (dtype_of(a) == dtype && count_of(a) == count && is_contiguous(a));
}

/* The same for vectors beside a half type, which may be of float. */
static inline bool fits_either(array a, enum dtype dtype, ssize_t count) {
    return fits(a, dtype, count) || ((dtype == FLOAT16 || dtype == BFLOAT16) && fits(a, FLOAT32, count));
}

static inline void *data_of(array a) { return a ? a->data : NULL; }

#endif
