/* Linear maps by weights of int8, of inputs that are rounded to 256 steps between their least and their greatest number. */
#include "core/array.h"
#include "core/bits.h"
#include "core/memory.h"
#include "core/threads.h"
#include "core/widening.h"
#include "gemm/gemm.h"
#include "kernels.h"

#include <math.h>
#include <stdint.h>

enum { STEPS = 255, MIDDLE = 128, CHUNK = 1 << 14, PART = 1 << 10 }; /* elements: of a task, and of halves widened at a time */

struct rounding {
    ssize_t n;
    const void *x;
    struct half half; /* of x */
    int32_t (*extremes)[2]; /* of each chunk */
    float step, zero;
    int8_t *steps;
};

/* Numbers and their ranks have the same order; NaN lie beyond the infinities. */
static inline int32_t rank_of(float x) {
    int32_t bits = (int32_t)bits_f32(x);
    return bits ^ (bits >> 31 & 0x7FFFFFFF);
}

static inline float of_rank(int32_t rank) { return from_bits_f32((uint32_t)(rank ^ (rank >> 31 & 0x7FFFFFFF))); }

static inline ssize_t end_of(const struct rounding *r, ssize_t chunk) {
    return (chunk + 1) * CHUNK < r->n ? (chunk + 1) * CHUNK : r->n;
}

static void find_extremes(void *context, ssize_t begin, ssize_t end) {
    const struct rounding *r = context;
    for (ssize_t chunk = begin; chunk < end; chunk++) {
        int32_t low = 0, high = 0; /* zero is among the steps */
        for (ssize_t from = chunk * CHUNK; from < end_of(r, chunk); from += PART) {
            float copy[PART];
            ssize_t n = end_of(r, chunk) - from < PART ? end_of(r, chunk) - from : PART;
            const float *x = rows_at_f32(r->half, r->x, from, 1, n, n, copy);
            for (ssize_t i = 0; i < n; i++) {
                int32_t rank = rank_of(x[i]);
                low = rank < low ? rank : low;
                high = rank > high ? rank : high;
            }
        }
        r->extremes[chunk][0] = low, r->extremes[chunk][1] = high;
    }
}

static void round_chunks(void *context, ssize_t begin, ssize_t end) {
    const struct rounding *r = context;
    const float step = r->step, zero = r->zero;
    for (ssize_t from = begin * CHUNK; from < end_of(r, end - 1); from += PART) {
        float copy[PART];
        ssize_t n = end_of(r, end - 1) - from < PART ? end_of(r, end - 1) - from : PART;
        const float *x = rows_at_f32(r->half, r->x, from, 1, n, n, copy);
        int8_t *restrict to = r->steps + from;
        for (ssize_t i = 0; i < n; i++) {
            float y = rintf(x[i] / step) + zero;
            y = y < 0 ? 0 : y > STEPS ? STEPS : y;
            to[i] = (int8_t)((int32_t)y - MIDDLE);
        }
    }
}

/* Round all numbers to steps; false if one is not finite. */
static bool round_to_steps(struct rounding *r) {
    ssize_t chunks = (r->n + CHUNK - 1) / CHUNK;
    int32_t low = 0, high = 0;
    parallel_for(chunks, 8, find_extremes, r);
    for (ssize_t i = 0; i < chunks; i++) {
        low = r->extremes[i][0] < low ? r->extremes[i][0] : low;
        high = r->extremes[i][1] > high ? r->extremes[i][1] : high;
    }
    float span = of_rank(high) - of_rank(low);
    if (!isfinite(span)) return false;
    r->step = span / STEPS > 0 ? span / STEPS : 1;
    r->zero = rintf(-of_rank(low) / r->step);
    parallel_for(chunks, 4, round_chunks, r);
    return true;
}

int quantized_linear(uintptr_t input, uintptr_t weight, uintptr_t scale, uintptr_t sums, uintptr_t bias, int products,
                     uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    array x = ARRAY(input), w = ARRAY(weight), s = ARRAY(scale), t = ARRAY(sums), b = ARRAY(bias), c = ARRAY(output);
    enum dtype dtype = dtype_of(x);
    if (computed_in(dtype) != FLOAT32 || dtype_of(w) != INT8 || dtype_of(s) != FLOAT32 || dtype_of(t) != INT32 ||
        (b && dtype_of(b) != FLOAT32) || dtype_of(c) != dtype)
        return WRONG_DTYPE;
    if (w->ndim != 2 || x->ndim < 1 || c->ndim < 1) return WRONG_SHAPE;
    ssize_t n = w->shape[0], k = w->shape[1], rows = 1;
    for (int i = 0; i < x->ndim - 1; i++) rows *= x->shape[i];
    if (x->shape[x->ndim - 1] != k || c->shape[c->ndim - 1] != n || count_of(c) != rows * n || count_of(t) != n ||
        (count_of(s) != 1 && count_of(s) != n) || (b && count_of(b) != n))
        return WRONG_SHAPE;
    if (!is_contiguous(x) || !is_contiguous(w) || !is_contiguous(s) || !is_contiguous(t) || (b && !is_contiguous(b)) ||
        !is_contiguous(c))
        return UNSUPPORTED;
    if (rows * n == 0) return OK;
    struct rounding r = {.n = rows * k, .x = x->data, .half = half_of(dtype)};
    ssize_t chunks = (r.n + CHUNK - 1) / CHUNK;
    r.extremes = allocate_items(chunks + 1, sizeof *r.extremes);
    r.steps = allocate_items(r.n + 1, 1);
    bool done = r.extremes && r.steps;
    if (done && !round_to_steps(&r)) {
        const float nan = NAN;
        for (ssize_t i = 0; i < rows * n && !r.half.narrow; i++) ((float *)c->data)[i] = nan;
        for (ssize_t i = 0; i < rows * n && r.half.narrow; i++) r.half.narrow(1, &nan, (uint16_t *)c->data + i);
    } else if (done) {
        struct dequantization d = {r.half.narrow, r.step, (int32_t)r.zero - MIDDLE, (const float *)s->data, count_of(s) != 1,
                                   (const int32_t *)t->data, b ? (const float *)b->data : NULL};
        struct product p = {.m = rows, .n = n, .k = k, .a = r.steps, .b = w->data, .added = &d, .c = c->data,
                            .a_row = k, .a_column = 1, .b_row = 1, .b_column = k, .c_row = n};
        multiplication *multiply = products == BY_TILES   ? multiply_i8_to_floats_by_tiles
                                   : products == BY_PAIRS ? multiply_i8_to_floats_by_quads
                                                          : multiply_i8_to_floats;
        done = multiply(&p);
    }
    release(r.extremes);
    release(r.steps);
    return done ? OK : NO_MEMORY;
}
