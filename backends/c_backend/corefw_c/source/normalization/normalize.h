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

/* Halves of a channel that are widened once, and not for each pass over them: as floats they fit the first-level cache. Zen 5, 8
 * images: 14 x 14 and 28 x 28 1.15 to 1.3 times as fast. */
enum { WIDENED_ONCE = 1 << 13 };

/* How far ahead of a channel of `n` elements those are that are asked for: 0 in arrays that stay in caches. Zen 5, bfloat16, 8
 * images: 256 channels of 56 x 56 1.33 times as fast, their gradients 1.36, 512 of 28 x 28 1 and 1.2. */
static inline ssize_t channels_ahead(ssize_t samples, ssize_t channels, ssize_t n, ssize_t size) {
    enum { LARGE_BYTES = 4 << 20, BYTES_AHEAD = 512 };
    return samples * channels * n * size < LARGE_BYTES ? 0 : 1 + BYTES_AHEAD / (n * size);
}

/* Ask for rows of n elements of `size` bytes, `apart` from each other, from the at-th of an array on: those of a channel are too
 * short, and too far apart, for the processor to foresee. `written` is a constant. */
static inline __attribute__((always_inline)) void ask_for_rows(const void *array, ssize_t size, ssize_t at, ssize_t rows,
                                                               ssize_t n, ssize_t apart, const bool written) {
    for (ssize_t r = 0; r < rows; r++, at += apart)
        for (ssize_t i = 0; i < n * size; i += 64)
            if (written) __builtin_prefetch((const char *)array + at * size + i, 1);
            else __builtin_prefetch((const char *)array + at * size + i, 0, 2);
}

static inline void *data_of(array a) { return a ? a->data : NULL; }

/* A vector, which may be absent, as floats: in `copy` if it is of a half type. */
static inline const void *floats_of(array vector, float *copy) {
    if (!vector || dtype_of(vector) == FLOAT32) return data_of(vector);
    half_of(dtype_of(vector)).widen(count_of(vector), vector->data, copy);
    return copy;
}

#endif
