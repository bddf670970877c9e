/* softmax and log_softmax along one dimension, with their gradients. */
#include "array.h"
#include "kernels.h"
#include "mathematics.h"
#include "threads.h"

#define TEMPLATE "softmax.inc"
#include "each_real.h"

/* The elements before, along and after dimension `dim` of a contiguous array. */
static void split(array a, int dim, ssize_t *outer, ssize_t *n, ssize_t *inner) {
    *outer = *inner = 1;
    for (int i = 0; i < dim; i++) *outer *= a->shape[i];
    *n = a->shape[dim];
    for (int i = dim + 1; i < a->ndim; i++) *inner *= a->shape[i];
}

int softmax(uintptr_t input, int dim, uintptr_t output) {
    array x = ARRAY(input), y = ARRAY(output);
    if (dim < 0 || dim >= x->ndim || !same_shape(x, y) || !is_contiguous(x) || !is_contiguous(y)) return WRONG_SHAPE;
    if (dtype_of(x) != dtype_of(y)) return WRONG_DTYPE;
    ssize_t outer, n, inner;
    split(x, dim, &outer, &n, &inner);
    switch (dtype_of(x)) {
    case FLOAT32: {
        struct softmax_job_f32 job = {(void *)x->data, (void *)y->data, n, inner};
        parallel_for(outer * inner, grain_for(20 * n), softmax_rows_f32, &job);
        return OK;
    }
    case FLOAT64: {
        struct softmax_job_f64 job = {(void *)x->data, (void *)y->data, n, inner};
        parallel_for(outer * inner, grain_for(20 * n), softmax_rows_f64, &job);
        return OK;
    }
    default: return WRONG_DTYPE;
    }
}
