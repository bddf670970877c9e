/* Copies, fills, joins and rearrangements of arrays. */
#include "kernels.h"
#include "core/memory.h"
#include "core/strided.h"
#include "core/threads.h"

#include <string.h>

static ssize_t size_in_bytes(array a) { return (ssize_t)size_of(dtype_of(a)); }

/* Checks that element types are equal and known. */
static bool same_dtype(array a, array b) { return dtype_of(a) == dtype_of(b) && dtype_of(a) != NO_DTYPE; }

/* -- copies -- */
/* Copy or convert between any two arrays of one shape, which may overlap. */
static int transfer(int ndim, const ssize_t *shape, char *target, const ssize_t *target_strides, enum dtype to,
                    const char *source, const ssize_t *source_strides, enum dtype from) {
    ssize_t from_size = (ssize_t)size_of(from), dense[MAX_DIMS], count = 1;
    for (int i = ndim - 1; i >= 0; count *= shape[i--]) dense[i] = count * from_size;
    if (count == 0) return OK;
    char *held = NULL;
    if (extents_overlap(ndim, shape, target, target_strides, size_of(to), ndim, shape, source, source_strides,
                        size_of(from))) {
        held = allocate_items(count * from_size, 1);
        if (!held) return NO_MEMORY;
        copy_strided(ndim, shape, held, dense, source, source_strides, (size_t)from_size);
        source = held, source_strides = dense;
    }
    bool done = true;
    if (to == from) copy_strided(ndim, shape, target, target_strides, source, source_strides, (size_t)from_size);
    else done = convert_strided(ndim, shape, target, target_strides, to, source, source_strides, from);
    release(held);
    return done ? OK : UNSUPPORTED;
}

int copy(uintptr_t source, uintptr_t target) {
    if (!WRITABLE(target)) return READ_ONLY;
    array x = ARRAY(source), y = ARRAY(target);
    if (dtype_of(x) == NO_DTYPE || dtype_of(y) == NO_DTYPE) return WRONG_DTYPE;
    if (x->ndim > y->ndim) return WRONG_SHAPE;
    ssize_t strides[MAX_DIMS];
    for (int i = 0; i < y->ndim; i++) {
        int at = i - (y->ndim - x->ndim);
        bool repeated = at < 0 || x->shape[at] == 1;
        if (!repeated && x->shape[at] != y->shape[i]) return WRONG_SHAPE;
        strides[i] = repeated ? 0 : x->strides[at];
    }
    return transfer(y->ndim, y->shape, y->data, y->strides, dtype_of(y), x->data, strides, dtype_of(x));
}

/* -- joins -- */
int cat(const uintptr_t *tensors, int count, int dim, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    array y = ARRAY(output);
    if (dim < 0 || dim >= y->ndim) return WRONG_SHAPE;
    ssize_t total = 0;
    for (int i = 0; i < count; i++) {
        array x = ARRAY(tensors[i]);
        if (!same_dtype(x, y)) return WRONG_DTYPE;
        if (x->ndim != y->ndim) return WRONG_SHAPE;
        for (int d = 0; d < y->ndim; d++)
            if (d != dim && x->shape[d] != y->shape[d]) return WRONG_SHAPE;
        total += x->shape[dim];
    }
    if (total != y->shape[dim]) return WRONG_SHAPE;
    char *target = y->data;
    for (int i = 0; i < count; i++) {
        array x = ARRAY(tensors[i]);
        copy_strided(x->ndim, x->shape, target, y->strides, x->data, x->strides, size_of(dtype_of(y)));
        target += x->shape[dim] * y->strides[dim];
    }
    return OK;
}

int stack(const uintptr_t *tensors, int count, int dim, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    array y = ARRAY(output);
    if (dim < 0 || dim >= y->ndim || y->shape[dim] != count) return WRONG_SHAPE;
    ssize_t shape[MAX_DIMS], strides[MAX_DIMS];
    for (int d = 0; d < y->ndim - 1; d++) shape[d] = y->shape[d + (d >= dim)], strides[d] = y->strides[d + (d >= dim)];
    for (int i = 0; i < count; i++) {
        if (!same_dtype(ARRAY(tensors[i]), y)) return WRONG_DTYPE;
        if (!has_shape(ARRAY(tensors[i]), y->ndim - 1, shape)) return WRONG_SHAPE;
    }
    for (int i = 0; i < count; i++) {
        array x = ARRAY(tensors[i]);
        copy_strided(x->ndim, shape, y->data + i * y->strides[dim], strides, x->data, x->strides, size_of(dtype_of(y)));
    }
    return OK;
}

/* -- rearrangements -- */
int repeat(uintptr_t input, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    array x = ARRAY(input), y = ARRAY(output);
    if (!same_dtype(x, y)) return WRONG_DTYPE;
    if (x->ndim > y->ndim) return WRONG_SHAPE;
    ssize_t shape[MAX_LOOPS], target_strides[MAX_LOOPS], source_strides[MAX_LOOPS];
    for (int i = 0; i < y->ndim; i++) {
        int at = i - (y->ndim - x->ndim);
        ssize_t n = at < 0 ? 1 : x->shape[at];
        if (n ? y->shape[i] % n : y->shape[i]) return WRONG_SHAPE;
        shape[2 * i] = n ? y->shape[i] / n : 0, shape[2 * i + 1] = n;
        target_strides[2 * i] = n * y->strides[i], target_strides[2 * i + 1] = y->strides[i];
        source_strides[2 * i] = 0, source_strides[2 * i + 1] = at < 0 ? 0 : x->strides[at];
    }
    copy_strided(2 * y->ndim, shape, y->data, target_strides, x->data, source_strides, size_of(dtype_of(y)));
    return OK;
}

int flip(uintptr_t input, const intptr_t *reversed, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    array x = ARRAY(input), y = ARRAY(output);
    if (!same_dtype(x, y)) return WRONG_DTYPE;
    if (!same_shape(x, y)) return WRONG_SHAPE;
    const char *source = x->data;
    ssize_t strides[MAX_DIMS];
    for (int i = 0; i < x->ndim; i++) {
        strides[i] = reversed[i] ? -x->strides[i] : x->strides[i];
        if (reversed[i]) source += (x->shape[i] - 1) * x->strides[i];
    }
    copy_strided(x->ndim, x->shape, y->data, y->strides, source, strides, size_of(dtype_of(y)));
    return OK;
}

/* Roll a part of x, to which the dimensions before `dim` have been cut already, along those from `dim` on. */
static void roll_from(int dim, array x, array y, ssize_t *shape, const char *source, char *target,
                      const intptr_t *shifts) {
    while (dim < x->ndim && shifts[dim] == 0) dim++;
    if (dim == x->ndim) {
        copy_strided(x->ndim, shape, target, y->strides, source, x->strides, size_of(dtype_of(y)));
        return;
    }
    ssize_t n = shape[dim], shift = shifts[dim];
    shape[dim] = n - shift;
    roll_from(dim + 1, x, y, shape, source, target + shift * y->strides[dim], shifts);
    shape[dim] = shift;
    roll_from(dim + 1, x, y, shape, source + (n - shift) * x->strides[dim], target, shifts);
    shape[dim] = n;
}

int roll(uintptr_t input, const intptr_t *shifts, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    array x = ARRAY(input), y = ARRAY(output);
    if (!same_dtype(x, y)) return WRONG_DTYPE;
    if (!same_shape(x, y)) return WRONG_SHAPE;
    ssize_t shape[MAX_DIMS];
    for (int i = 0; i < x->ndim; i++) {
        if (x->shape[i] == 0) return OK;
        if (shifts[i] < 0 || shifts[i] >= x->shape[i]) return OUT_OF_RANGE;
        shape[i] = x->shape[i];
    }
    roll_from(0, x, y, shape, x->data, y->data, shifts);
    return OK;
}

/* -- rows of which a part is copied and the rest filled -- */
struct partial_job {
    array x, y;
    const char *value; /* what the rest is */
    intptr_t diagonal;
    bool lower;
    size_t size;
};

/* Row `row` of the output: elements begin to end are those of `source` on, which lies at the element `begin`. */
static void partial_row(const struct partial_job *job, ssize_t row, const char *source, ssize_t begin, ssize_t end) {
    ssize_t size = (ssize_t)job->size;
    int last = job->y->ndim - 1;
    ssize_t n = job->y->shape[last];
    char *target = job->y->data + row * n * size;
    if (end < begin) end = begin;
    copy_row(begin, target, size, job->value, 0, job->size);
    if (begin < end) copy_row(end - begin, target + begin * size, size, source, job->x->strides[last], job->size);
    copy_row(n - end, target + end * size, size, job->value, 0, job->size);
}

static void triangle_rows(void *context, ssize_t begin, ssize_t end) {
    const struct partial_job *job = context;
    array x = job->x;
    int last = x->ndim - 1;
    ssize_t n = x->shape[last];
    for (ssize_t row = begin; row < end; row++) {
        const char *source = x->data;
        ssize_t left = row, edge = row % x->shape[last - 1] + job->diagonal + job->lower;
        for (int i = last - 1; i >= 0; left /= x->shape[i--]) source += left % x->shape[i] * x->strides[i];
        edge = edge < 0 ? 0 : edge > n ? n : edge;
        if (job->lower) partial_row(job, row, source, 0, edge);
        else partial_row(job, row, source + edge * x->strides[last], edge, n);
    }
}

int triangle(uintptr_t input, intptr_t diagonal, int lower, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    static const char zero[16];
    array x = ARRAY(input), y = ARRAY(output);
    if (!same_dtype(x, y)) return WRONG_DTYPE;
    if (x->ndim < 2 || !same_shape(x, y) || !is_contiguous(y)) return WRONG_SHAPE;
    ssize_t count = count_of(x), n = x->shape[x->ndim - 1], far = x->shape[x->ndim - 2] + n;
    if (count == 0) return OK;
    diagonal = diagonal < -far ? -far : diagonal > far ? far : diagonal;
    struct partial_job job = {
        .x = x, .y = y, .value = zero, .diagonal = diagonal, .lower = lower, .size = size_of(dtype_of(y))};
    parallel_for(count / n, grain_for(n * size_in_bytes(y) / 16 + 16), triangle_rows, &job);
    return OK;
}
