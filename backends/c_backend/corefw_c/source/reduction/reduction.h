/* Reductions as reducers: how elements join to totals (reductions.c), apart from where they lie (reduction.c). */
#ifndef COREFW_REDUCTION_H
#define COREFW_REDUCTION_H

#include "core/array.h"
#include "kernels.h"

/* The most columns that are reduced at a time, so that their totals stay in the first cache. */
enum { STRIP = 1024 };

/* What a reduction over `count` elements is given beside them. */
struct options {
    double count, divisor, parameter;
};

/* A matrix whose rows are to be reduced into one: element (r, j) is x[r * stride + j]. Among all elements that are
 * reduced to one it comes at `position + r * step + j * across`. */
struct strip {
    const void *x;
    ssize_t rows, stride, width;
    ssize_t position, step, across;
    const struct options *options;
};

/* A way of folding. The totals of `width` columns are `parts` arrays of `width` items each, which begin 8 * width bytes
 * apart. */
struct reducer {
    int parts;
    bool ordered;   /* positions matter: dimensions must not change places */
    bool identity;  /* there is a result for no elements */
    void (*start)(void *totals, ssize_t width);
    void (*columns)(const struct strip *, void *totals);  /* strip->width <= STRIP */
    void (*row)(const struct strip *, void *totals);      /* one column: rows elements, stride apart */
    /* the results of `count` such columns that begin `step` elements apart; absent where that is not faster */
    void (*rows)(const struct strip *, ssize_t step, ssize_t count, char *const outputs[2], ssize_t begin);
    /* totals[:n] join others[from : from + n] */
    void (*join)(void *totals, ssize_t width, ssize_t n, const void *others, ssize_t others_width, ssize_t from);
    /* the results of n columns into elements `step` apart; the second output is of reducers that have positions */
    void (*finish)(const void *totals, ssize_t n, const struct options *, char *const outputs[2], ssize_t begin,
                   ssize_t step);
};

/* The reducer of a reduction and an element type, NULL if there is none, with the type of its result. */
const struct reducer *reducer_of(enum reduction reduction, enum dtype dtype, enum dtype *result);

#endif
