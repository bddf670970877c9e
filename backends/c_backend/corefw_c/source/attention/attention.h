/* The operands of attention: arrays of one matrix per head, of any strides. */
#ifndef COREFW_ATTENTION_H
#define COREFW_ATTENTION_H

#include "attention/attention_halves.h"
#include "core/array.h"
#include "core/widening.h"

/* One matrix per head: `row` and `column` count elements, the strides of the batch dimensions bytes. */
struct heads {
    const char *data;
    ssize_t row, column, strides[MAX_DIMS];
};

/* What forward and backward have in common. */
struct attention {
    ssize_t count, queries, keys, width, value_width; /* count: of the heads */
    int batch_ndim;
    const ssize_t *batch_shape;
    struct heads query, key, value, bias; /* bias.data is NULL if there is none */
    bool causal;
    double scale;
    struct half half;                   /* of all operands, if they are of a half type */
    const struct halves_engine *engine; /* what multiplies them as they are, or NULL */
};

/* The first element of a head's matrix; NULL if there are none. */
static inline const void *matrix_of(const struct attention *of, const struct heads *from, ssize_t head) {
    if (!from->data) return NULL;
    ssize_t offset = 0;
    for (int i = of->batch_ndim - 1; i >= 0; head /= of->batch_shape[i--])
        offset += head % of->batch_shape[i] * from->strides[i];
    return from->data + offset;
}

/* The first element of a head's result. */
static inline void *result_of(const struct attention *of, const struct heads *to, ssize_t head) {
    return (void *)(uintptr_t)matrix_of(of, to, head);
}

/* How many keys the queries before `end` may attend to. */
static inline ssize_t allowed_keys(const struct attention *of, ssize_t end) {
    return of->causal && end < of->keys ? end : of->keys;
}

#endif
