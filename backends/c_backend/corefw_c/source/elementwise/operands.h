/* Operands of elementwise loops that broadcast or are strided: blocks of their elements, where they lie or in buffers. */
#ifndef COREFW_OPERANDS_H
#define COREFW_OPERANDS_H

#include "core/halves.h"
#include "core/strided.h"
#include "elementwise/elementwise.h"

#include <string.h>

enum {
    BLOCK = 8192, /* bytes of an operand in a block */
    SLACK = 64,   /* bytes behind it that a buffer has */
};

struct operand {
    int dtype;
    bool widen; /* a half type, computed in float */
    ssize_t size;
    char *data;
    ssize_t strides[MAX_DIMS]; /* of the loops, in bytes; 0 where elements are repeated */
};

/* What a thread has in its buffers: an operand's block of that many rows and columns from there. */
struct buffer {
    const char *from;
    ssize_t rows, columns;
    char elements[BLOCK + SLACK] __attribute__((aligned(64)));
};

static inline ssize_t smaller(ssize_t a, ssize_t b) { return a < b ? a : b; }

/* The bytes of an element as the loop takes it. */
static inline ssize_t width_of(const struct operand *o) { return o->widen ? (ssize_t)sizeof(float) : o->size; }

/* -- blocks -- */
/* Whether a block's elements lie one after the other. */
static inline bool is_dense(const struct operand *o, ssize_t rows, ssize_t columns) {
    return o->strides[0] == o->size && (rows == 1 || o->strides[1] == columns * o->size);
}

/* Rows times columns of elements from one place to another one, either strided. */
static inline void copy_block(ssize_t rows, ssize_t columns, ssize_t size, char *to, const ssize_t *to_strides,
                       const char *from, const ssize_t *from_strides) {
    bool transposed = (from_strides[1] == size) != (to_strides[1] == size) && columns > 1;
    if (transposed && from_strides[0] != 0) {
        ssize_t shape[] = {rows, columns}, targets[] = {to_strides[1], to_strides[0]};
        copy_strided(2, shape, to, targets, from, (ssize_t[]){from_strides[1], from_strides[0]}, (size_t)size);
        return;
    }
    for (ssize_t i = 0; i < rows; i++)
        copy_row(columns, to + i * to_strides[1], to_strides[0], from + i * from_strides[1], from_strides[0],
                 (size_t)size);
}

/* Whole vectors are written, beyond the end of a row: the next one, or the slack, takes what is too much. */
#define REPEAT(T, FROM, element) \
    for (ssize_t i = 0; i < rows; i++) { \
        const FROM x = *(const FROM *)(from + i * o->strides[1]); \
        T *row = (T *)to + i * columns; \
        for (ssize_t j = 0; j < columns; j += SLACK / (ssize_t)sizeof(T)) \
            for (ssize_t k = 0; k < SLACK / (ssize_t)sizeof(T); k++) row[j + k] = element; \
    }

/* The block from `from`, whose rows have one element each, as the loop takes it. */
static inline void repeat_elements(const struct operand *o, ssize_t rows, ssize_t columns, const char *from, char *to) {
    if (o->widen && o->dtype == FLOAT16) REPEAT(float, element_2, float_of_float16(x))
    else if (o->widen) REPEAT(float, element_2, float_of_bfloat16(x))
    else if (o->size == 1) REPEAT(element_1, element_1, x)
    else if (o->size == 2) REPEAT(element_2, element_2, x)
    else if (o->size == 4) REPEAT(element_4, element_4, x)
    else if (o->size == 8) REPEAT(element_8, element_8, x)
    else REPEAT(element_16, element_16, x)
}

/* The block from `from` as the loop takes it, where it lies or in the buffer. */
static inline char *read_block(const struct operand *o, ssize_t rows, ssize_t columns, char *from, struct buffer *buffer) {
    bool dense = is_dense(o, rows, columns);
    if (dense && !o->widen) return from;
    if (from == buffer->from && columns == buffer->columns && rows <= buffer->rows) return buffer->elements;
    buffer->from = from, buffer->rows = rows, buffer->columns = columns;
    if (o->strides[0] == 0 && columns > 1) {
        repeat_elements(o, rows, columns, from, buffer->elements);
        return buffer->elements;
    }
    uint16_t halves[BLOCK / sizeof(float)];
    const uint16_t *source = (const uint16_t *)from;
    if (!dense) {
        char *copy = o->widen ? (char *)halves : buffer->elements;
        copy_block(rows, columns, o->size, copy, (ssize_t[]){o->size, columns * o->size}, from, o->strides);
        source = halves;
    }
    if (o->widen)
        (o->dtype == FLOAT16 ? widen_float16 : widen_bfloat16)(rows * columns, source, buffer->elements);
    return buffer->elements;
}

/* A block of results, to where the caller wants them. */
static inline void write_block(const struct operand *o, ssize_t rows, ssize_t columns, const char *results, char *to) {
    bool dense = is_dense(o, rows, columns);
    uint16_t halves[BLOCK / sizeof(float)], *narrowed = dense ? (uint16_t *)to : halves;
    if (o->widen) {
        (o->dtype == FLOAT16 ? narrow_float16 : narrow_bfloat16)(rows * columns, results, narrowed);
        results = (const char *)halves;
    }
    if (!dense)
        copy_block(rows, columns, o->size, to, o->strides, results, (ssize_t[]){o->size, columns * o->size});
    else if (!o->widen)
        memcpy(to, results, (size_t)(rows * columns * o->size));
}

/* -- how operands lie -- */
static inline ssize_t distance(ssize_t stride) { return stride < 0 ? -stride : stride; }

/* The stride of an operand in dimension d of the result. */
static inline ssize_t stride_in(array a, array out, int d) {
    int own = d - (out->ndim - a->ndim);
    return own < 0 || a->shape[own] == 1 ? 0 : a->strides[own];
}

static inline bool broadcasts_to(array a, array out) {
    int missing = out->ndim - a->ndim;
    if (a->ndim < 0 || missing < 0) return false;
    for (int d = 0; d < a->ndim; d++)
        if (a->shape[d] != 1 && a->shape[d] != out->shape[d + missing]) return false;
    return true;
}

static inline bool is_aligned(array a, ssize_t unit) {
    uintptr_t bits = (uintptr_t)a->data;
    for (int d = 0; d < a->ndim; d++) bits |= (uintptr_t)a->strides[d];
    return (bits & (uintptr_t)(unit - 1)) == 0;
}

/* Whether a result may be written block by block while the input is read. */
static inline bool is_apart(array a, array out) {
    if (!overlap(a, out)) return true;
    return a->data == out->data && same_shape(a, out) && size_of(dtype_of(a)) == size_of(dtype_of(out)) &&
           (a->ndim == 0 || !memcmp(a->strides, out->strides, (size_t)a->ndim * sizeof *a->strides));
}

#endif
