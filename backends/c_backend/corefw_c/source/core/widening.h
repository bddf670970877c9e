/* Half types in kernels of float: parts of arrays are widened into the cache, computed there, and narrowed into the result.
 * So no kernel is compiled for them, and no array is converted as a whole. */
#ifndef COREFW_WIDENING_H
#define COREFW_WIDENING_H

#include "core/array.h"
#include "core/halves.h"

/* What converts a half type from and to float; NULL for other types. */
struct half {
    void (*widen)(ssize_t n, const void *halves, void *floats);
    void (*narrow)(ssize_t n, const void *floats, void *halves);
};

static inline struct half half_of(enum dtype dtype) {
    switch (dtype) {
    case FLOAT16: return (struct half){widen_float16, narrow_float16};
    case BFLOAT16: return (struct half){widen_bfloat16, narrow_bfloat16};
    default: return (struct half){NULL, NULL};
    }
}

/* The type in which elements of a type are computed. */
static inline enum dtype computed_in(enum dtype dtype) { return dtype == FLOAT16 || dtype == BFLOAT16 ? FLOAT32 : dtype; }

/* Rows of n halves, `row` apart, as floats without gaps; and back. */
static inline void widen_rows(struct half half, ssize_t rows, ssize_t n, const uint16_t *from, ssize_t row, float *to) {
    if (row == n) half.widen(rows * n, from, to);
    else
        for (ssize_t i = 0; i < rows; i++) half.widen(n, from + i * row, to + i * n);
}

static inline void narrow_rows(struct half half, ssize_t rows, ssize_t n, const float *from, uint16_t *to, ssize_t row) {
    if (row == n) half.narrow(rows * n, from, to);
    else
        for (ssize_t i = 0; i < rows; i++) half.narrow(n, from + i * n, to + i * row);
}

#endif
