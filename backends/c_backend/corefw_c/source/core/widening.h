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

/* Rows of n elements, `apart` from each other, from the at-th of an array on: where they lie, or, of a half type, as floats
 * without gaps in `copy`. */
static inline const float *rows_at_f32(struct half half, const void *array, ssize_t at, ssize_t rows, ssize_t n,
                                       ssize_t apart, float *copy) {
    if (!half.widen) return (const float *)array + at;
    widen_rows(half, rows, n, (const uint16_t *)array + at, apart, copy);
    return copy;
}

static inline const double *rows_at_f64(struct half half, const void *array, ssize_t at, ssize_t rows, ssize_t n,
                                        ssize_t apart, double *copy) {
    (void)half, (void)rows, (void)n, (void)apart, (void)copy;
    return (const double *)array + at;
}

/* The first element of an array of any floating type. */
static inline double read_real(array a) {
    float copy;
    if (dtype_of(a) == FLOAT64) return *(const double *)a->data;
    return *rows_at_f32(half_of(dtype_of(a)), a->data, 0, 1, 1, 1, &copy);
}

static inline void write_real(array a, double value) {
    float rounded = (float)value;
    if (dtype_of(a) == FLOAT64) *(double *)a->data = value;
    else if (dtype_of(a) == FLOAT32) *(float *)a->data = rounded;
    else half_of(dtype_of(a)).narrow(1, &rounded, a->data);
}

#endif
