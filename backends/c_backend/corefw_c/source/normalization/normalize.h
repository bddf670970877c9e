/* What the normalisations and their gradients share. */
#ifndef COREFW_NORMALIZE_H
#define COREFW_NORMALIZE_H

#include "core/array.h"

/* Whether an array, which may be absent, has this dtype and is contiguous with this many elements. */
static inline bool fits(array a, enum dtype dtype, ssize_t count) {
    return !a || (dtype_of(a) == dtype && count_of(a) == count && is_contiguous(a));
}

static inline void *data_of(array a) { return a ? a->data : NULL; }

#endif
