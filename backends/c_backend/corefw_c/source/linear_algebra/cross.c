/* Cross products of vectors of length 3. */
#include "core/array.h"
#include "core/threads.h"
#include "core/widening.h"
#include "kernels.h"

enum { WIDENED = 512 }; /* vectors at a time */

struct cross_job {
    ssize_t inner;        /* elements between the components of a vector */
    ssize_t line, pieces; /* vectors that lie one after another, and in how many pieces */
    const void *a, *b;
    void *y;
    struct half half;
};

#define TEMPLATE "linear_algebra/cross.inc"
#include "core/each_real.h"

int cross(uintptr_t input, uintptr_t other, int dim, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    array a = ARRAY(input), b = ARRAY(other), y = ARRAY(output);
    enum dtype dtype = dtype_of(a), wide = computed_in(dtype);
    if (dtype_of(b) != dtype || dtype_of(y) != dtype || (wide != FLOAT32 && wide != FLOAT64)) return WRONG_DTYPE;
    if (dim < 0 || dim >= a->ndim || a->shape[dim] != 3 || !same_shape(a, b) || !same_shape(a, y)) return WRONG_SHAPE;
    if (!is_contiguous(a) || !is_contiguous(b) || !is_contiguous(y)) return WRONG_SHAPE;
    struct cross_job job = {.inner = 1, .a = a->data, .b = b->data, .y = y->data, .half = half_of(dtype)};
    ssize_t vectors = count_of(a) / 3;
    for (int i = dim + 1; i < a->ndim; i++) job.inner *= a->shape[i];
    if (vectors == 0) return OK;
    job.line = job.inner == 1 ? vectors : job.inner;
    job.pieces = (job.line + WIDENED - 1) / WIDENED;
    ssize_t cost = 9 * (job.line < WIDENED ? job.line : WIDENED);
    parallel_for(vectors / job.line * job.pieces, grain_for(cost), wide == FLOAT32 ? cross_pieces_f32 : cross_pieces_f64,
                 &job);
    return OK;
}
