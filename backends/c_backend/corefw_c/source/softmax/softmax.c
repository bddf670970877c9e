/* softmax, its logarithm and their gradients, along one dimension. */
#include "core/array.h"
#include "kernels.h"
#include "core/lanes.h"
#include "core/threads.h"

enum { BUNDLE = 8, BUNDLED = 4096 }; /* the most rows of a bundle, and their elements */

#define TEMPLATE "reduction/row_sums.inc"
#include "core/each_real.h"
#define TEMPLATE "core/exponentials.inc"
#include "core/each_real.h"
#define TEMPLATE "softmax/softmax.inc"
#include "core/each_real.h"

/* Apply the range for the dtype to slices along `dim` of contiguous arrays of one shape. */
static int apply(array a, array b, int dim, array y, range_task of_f32, range_task of_f64) {
    if (dim < 0 || dim >= (a->ndim ? a->ndim : 1) || !same_shape(a, y) || !same_shape(b, y)) return WRONG_SHAPE;
    if (!is_contiguous(a) || !is_contiguous(b) || !is_contiguous(y)) return WRONG_SHAPE;
    enum dtype dtype = dtype_of(y);
    if (dtype_of(a) != dtype || dtype_of(b) != dtype) return WRONG_DTYPE;
    if (count_of(y) == 0) return OK;
    ssize_t outer = 1, n = y->ndim ? y->shape[dim] : 1, inner = 1;
    for (int i = 0; i < dim; i++) outer *= y->shape[i];
    for (int i = dim + 1; i < y->ndim; i++) inner *= y->shape[i];
    switch (dtype) {
    case FLOAT32: over_slices_f32(outer, n, inner, a->data, b->data, y->data, of_f32); return OK;
    case FLOAT64: over_slices_f64(outer, n, inner, a->data, b->data, y->data, of_f64); return OK;
    default: return WRONG_DTYPE;
    }
}

int softmax(uintptr_t input, int dim, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    return apply(ARRAY(input), ARRAY(input), dim, ARRAY(output), softmax_range_f32, softmax_range_f64);
}

int log_softmax(uintptr_t input, int dim, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    return apply(ARRAY(input), ARRAY(input), dim, ARRAY(output), log_softmax_range_f32, log_softmax_range_f64);
}

int softmax_backward(uintptr_t grad, uintptr_t output, int dim, uintptr_t result) {
    if (!WRITABLE(result)) return READ_ONLY;
    return apply(ARRAY(grad), ARRAY(output), dim, ARRAY(result), softmax_backward_range_f32,
                 softmax_backward_range_f64);
}

int log_softmax_backward(uintptr_t grad, uintptr_t output, int dim, uintptr_t result) {
    if (!WRITABLE(result)) return READ_ONLY;
    return apply(ARRAY(grad), ARRAY(output), dim, ARRAY(result), log_softmax_backward_range_f32,
                 log_softmax_backward_range_f64);
}
