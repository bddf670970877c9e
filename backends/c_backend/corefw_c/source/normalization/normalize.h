/* What the normalisations and their gradients share. */
#ifndef COREFW_NORMALIZE_H
#define COREFW_NORMALIZE_H

#include "core/array.h"
#include "core/widening.h"

/* Whether an array, which may be absent, has this dtype and is contiguous with this many elements. */
static inline bool fits(array a, enum dtype dtype, ssize_t count) {
    return !a || (dtype_of(a) == dtype && count_of(a) == count && is_contiguous(a));
}

/* The same for vectors beside a half type, which may be of float. */
static inline bool fits_either(array a, enum dtype dtype, ssize_t count) {
    return fits(a, dtype, count) || (half_of(dtype).widen && fits(a, FLOAT32, count));
}

static inline void *data_of(array a) { return a ? a->data : NULL; }

/* A vector, which may be absent, as floats: in `copy` if it is of a half type. */
static inline const void *floats_of(array vector, float *copy) {
    if (!vector || dtype_of(vector) == FLOAT32) return data_of(vector);
    half_of(dtype_of(vector)).widen(count_of(vector), vector->data, copy);
    return copy;
}

#endif
