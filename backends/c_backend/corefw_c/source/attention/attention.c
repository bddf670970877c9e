/* Attention without its matrix of weights, after Dao et al., "FlashAttention" (2022), and its gradients. */
#include "attention/attention.h"
#include "gemm/gemm.h"
#include "kernels.h"
#include "core/mathematics.h"
#include "core/memory.h"
#include "core/panel.h"
#include "core/sizes.h"
#include "core/threads.h"

#include <stdatomic.h>
#include <string.h>

/* -- parts of halves -- */
/* Rows of halves that may lie apart, as rows of `to` with zeros beyond `width`. */
static void copy_halves(ssize_t rows, ssize_t width, const uint16_t *from, ssize_t row, ssize_t column, uint16_t *to,
                        ssize_t to_row) {
    for (ssize_t i = 0; i < rows; i++, from += row, to += to_row) {
        if (column == 1) memcpy(to, from, (size_t)width * sizeof *to);
        else
            for (ssize_t j = 0; j < width; j++) to[j] = from[j * column];
        memset(to + width, 0, (size_t)(to_row - width) * sizeof *to);
    }
}

/* The same as floats without gaps. */
static void widen_matrix(struct half half, ssize_t rows, ssize_t width, const uint16_t *from, ssize_t row,
                         ssize_t column, float *to) {
    enum { PIECE = 64 };
    if (column == 1) {
        widen_rows(half, rows, width, from, row, to);
        return;
    }
    for (ssize_t i = 0; i < rows; i++, from += row, to += width)
        for (ssize_t j = 0, n; j < width; j += n) {
            uint16_t dense[PIECE];
            n = width - j < PIECE ? width - j : PIECE;
            copy_halves(1, n, from + j * column, 0, column, dense, n);
            half.widen(n, dense, to + j);
        }
}

#define TEMPLATE "attention/attention_operands.inc"
#include "core/each_real.h"
#define TEMPLATE "attention/attention.inc"
#include "core/each_real.h"
#define TEMPLATE "attention/attention_few.inc"
#include "core/each_real.h"
#define TEMPLATE "attention/attention_backward.inc"
#include "core/each_real.h"

/* Reads an array of (*batch, rows, columns), or one that broadcasts to it. */
static enum status read_heads(array a, const struct attention *of, ssize_t rows, ssize_t columns, bool broadcast,
                              enum dtype dtype, struct heads *heads) {
    ssize_t size = (ssize_t)size_of(dtype), wanted_ndim = of->batch_ndim + 2, missing = wanted_ndim - a->ndim;
    if (dtype_of(a) != dtype) return WRONG_DTYPE;
    if (missing < 0 || (missing && !broadcast)) return WRONG_SHAPE;
    ssize_t strides[MAX_DIMS] = {0};
    for (int i = (int)missing; i < wanted_ndim; i++) {
        ssize_t found = a->shape[i - missing], stride = a->strides[i - missing];
        ssize_t wanted = i < of->batch_ndim ? of->batch_shape[i] : i == of->batch_ndim ? rows : columns;
        if (found != wanted && !(broadcast && found == 1)) return WRONG_SHAPE;
        if (stride % size) return UNSUPPORTED;
        strides[i] = found == 1 ? 0 : stride;
    }
    heads->data = a->data;
    memcpy(heads->strides, strides, sizeof strides);
    heads->row = strides[of->batch_ndim] / size;
    heads->column = strides[of->batch_ndim + 1] / size;
    return OK;
}

/* What multiplies a type as it is, or NULL. */
static const struct halves_engine *engine_of(enum dtype dtype, int products) {
    if (dtype != BFLOAT16) return NULL;
    return products == BY_TILES ? &attention_tiles : products == BY_PAIRS ? attention_pairs : NULL;
}

/* Reads the operands that forward and backward share. */
static enum status read_operands(array query, array key, array value, array bias, bool causal, double scale,
                                 int products, struct attention *of) {
    if (query->ndim < 2 || query->ndim > MAX_DIMS || key->ndim != query->ndim || value->ndim != query->ndim)
        return WRONG_SHAPE;
    *of = (struct attention){
        .count = 1, .batch_ndim = query->ndim - 2, .batch_shape = query->shape, .causal = causal, .scale = scale,
        .queries = query->shape[query->ndim - 2], .keys = key->shape[key->ndim - 2],
        .width = query->shape[query->ndim - 1], .value_width = value->shape[value->ndim - 1],
    };
    enum dtype dtype = dtype_of(query);
    of->half = half_of(dtype), of->engine = engine_of(dtype, products);
    for (int i = 0; i < of->batch_ndim; i++) of->count *= of->batch_shape[i];
    enum status status = read_heads(query, of, of->queries, of->width, false, dtype, &of->query);
    if (!status) status = read_heads(key, of, of->keys, of->width, false, dtype, &of->key);
    if (!status) status = read_heads(value, of, of->keys, of->value_width, false, dtype, &of->value);
    if (!status && bias) status = read_heads(bias, of, of->queries, of->keys, true, dtype, &of->bias);
    return status;
}

/* Reads an array of (*batch, rows, columns) that is written to: its rows, if there are any, are contiguous. */
static enum status read_result(array a, const struct attention *of, ssize_t rows, ssize_t columns, enum dtype dtype,
                               struct heads *heads) {
    enum status status = read_heads(a, of, rows, columns, false, dtype, heads);
    return status || columns <= 1 || !rows || !of->count || heads->column == 1 ? status : UNSUPPORTED;
}

/* Whether `a` is a dense array of (*batch, queries). */
static bool is_of_queries(array a, const struct attention *of, enum dtype dtype) {
    int batch = of->batch_ndim;
    return a->ndim == batch + 1 && dtype_of(a) == dtype && is_contiguous(a) &&
           has_shape(&(struct array){.ndim = batch, .shape = a->shape}, batch, of->batch_shape) &&
           a->shape[batch] == of->queries;
}

int attention(uintptr_t query, uintptr_t key, uintptr_t value, uintptr_t bias, int causal, double scale,
              int products, uintptr_t output, uintptr_t logsumexp) {
    if (!WRITABLE(output, logsumexp)) return READ_ONLY;
    struct attention of;
    struct heads out;
    enum dtype dtype = dtype_of(ARRAY(query));
    array logarithms = ARRAY(logsumexp);
    enum status status =
        read_operands(ARRAY(query), ARRAY(key), ARRAY(value), ARRAY(bias), causal, scale, products, &of);
    if (!status) status = read_result(ARRAY(output), &of, of.queries, of.value_width, dtype, &out);
    if (status) return status;
    if (!is_of_queries(logarithms, &of, computed_in(dtype))) return WRONG_SHAPE;
    switch (computed_in(dtype)) {
    case FLOAT32: return attention_f32(&of, &out, (float *)logarithms->data);
    case FLOAT64: return attention_f64(&of, &out, (double *)logarithms->data);
    default: return WRONG_DTYPE;
    }
}

int attention_backward(uintptr_t gradient, uintptr_t query, uintptr_t key, uintptr_t value, uintptr_t output,
                       uintptr_t logsumexp, uintptr_t bias, int causal, double scale, int products,
                       uintptr_t grad_query, uintptr_t grad_key, uintptr_t grad_value) {
    if (!WRITABLE(grad_query, grad_key, grad_value)) return READ_ONLY;
    struct attention of;
    struct heads gradients, outputs, to_query, to_key, to_value;
    enum dtype dtype = dtype_of(ARRAY(query));
    array logs = ARRAY(logsumexp);
    enum status status =
        read_operands(ARRAY(query), ARRAY(key), ARRAY(value), ARRAY(bias), causal, scale, products, &of);
    if (!status) status = read_heads(ARRAY(gradient), &of, of.queries, of.value_width, false, dtype, &gradients);
    if (!status) status = read_heads(ARRAY(output), &of, of.queries, of.value_width, false, dtype, &outputs);
    if (!status) status = read_result(ARRAY(grad_query), &of, of.queries, of.width, dtype, &to_query);
    if (!status) status = read_result(ARRAY(grad_key), &of, of.keys, of.width, dtype, &to_key);
    if (!status) status = read_result(ARRAY(grad_value), &of, of.keys, of.value_width, dtype, &to_value);
    if (status) return status;
    if (!is_of_queries(logs, &of, computed_in(dtype))) return WRONG_SHAPE;
    switch (computed_in(dtype)) {
    case FLOAT32:
        return attention_backward_f32(&of, &gradients, &outputs, (float *)logs->data, &to_query, &to_key, &to_value);
    case FLOAT64:
        return attention_backward_f64(&of, &gradients, &outputs, (double *)logs->data, &to_query, &to_key, &to_value);
    default: return WRONG_DTYPE;
    }
}
