/* Random numbers: the kinds of docs/random.md. */
#if !defined(__clang__)
#pragma GCC optimize("fp-contract=off") /* the bits of what is rounded twice */
#endif
#pragma STDC FP_CONTRACT OFF

#include "core/array.h"
#include "core/halves.h"
#include "kernels.h"
#include "core/mathematics.h"
#include "random/philox.h"
#include "random/randomness.h"
#include "core/threads.h"
#include "core/widening.h"

/* -- words as numbers; for float32 the words, for float64 the long words -- */
typedef uint32_t __attribute__((may_alias)) word_f32; /* the first word is the low half: hosts are little-endian */
typedef uint64_t word_f64;
enum { BITS_f32 = 24, BITS_f64 = 53 };

/* The numerator of U. */
static inline uint32_t numerator_f32(const uint64_t *words, ssize_t i) { return ((const word_f32 *)words)[i] >> 8; }
static inline uint64_t numerator_f64(const uint64_t *words, ssize_t i) { return words[i] >> 11; }

/* U of so many bits. */
static inline float closed_f32(const uint64_t *words, ssize_t i, int bits) {
    return (float)(int32_t)(((const word_f32 *)words)[i] >> (32 - bits)) * (1.0f / (float)(1 << bits));
}
static inline double closed_f64(const uint64_t *words, ssize_t i, int bits) {
    (void)bits;
    return fraction(words[i] >> 11);
}

static inline double open_f32(const uint64_t *words, ssize_t i) { return open_of_word(((const word_f32 *)words)[i]); }
static inline double open_f64(const uint64_t *words, ssize_t i) { return open_of_long_word(words[i]); }

/* V of the elements 2 j and 2 j + 1. */
static inline double first_of_pair_f32(const uint64_t *words, ssize_t j) { return open_of_word(words[j]); }
static inline double first_of_pair_f64(const uint64_t *words, ssize_t j) { return open_of_long_word(words[2 * j]); }
static inline double second_of_pair_f32(const uint64_t *words, ssize_t j) { return open_of_word(words[j] >> 32); }
static inline double second_of_pair_f64(const uint64_t *words, ssize_t j) { return open_of_long_word(words[2 * j + 1]); }

/* -- kinds -- */
struct uniform { double bottom, span, largest; int bits; };
struct normal { double minus_twice_variance, mean, second_mean, std; };
struct cauchy { double median, sigma; };
struct bernoulli { uint64_t threshold; const char *p; };
struct dropout { const char *input; uint8_t *mask; char *output; double scale; uint64_t threshold; struct half half; };
struct integers { uint64_t low, span; };

#define TEMPLATE "random/random.inc"
#include "core/each_real.h"

static void geometric(const void *options, ssize_t first, ssize_t n, const uint64_t *words, void *out) {
    const double log_failure = *(const double *)options;
    double *restrict y = out;
    (void)first;
    for (ssize_t i = 0; i < n; i++) {
        double trials = ceil(log_of_fraction(open_of_long_word(words[i])) / log_failure);
        y[i] = trials > 1 ? trials : 1;
    }
}

/* The upper half of the product of each long word and the span, 0 for 2^64, plus low. */
static void integers(const void *options, ssize_t first, ssize_t n, const uint64_t *words, void *out) {
    const struct integers o = *(const struct integers *)options;
    uint64_t *restrict y = out;
    (void)first;
    if (o.span >> 32 || !o.span)
        for (ssize_t i = 0; i < n; i++)
            y[i] = o.low + (o.span ? (uint64_t)((unsigned __int128)words[i] * o.span >> 64) : words[i]);
    else
        for (ssize_t i = 0; i < n; i++)
            y[i] = o.low + (((words[i] >> 32) * o.span + ((words[i] & 0xFFFFFFFF) * o.span >> 32)) >> 32);
}

/* -- elements of other types than they are computed in -- */
#define STORE(type, value) \
    do { \
        type *restrict y = (type *)out; \
        for (ssize_t i = 0; i < n; i++) y[i] = (value); \
        return; \
    } while (0)

static void store_floats(enum dtype dtype, const float *x, ssize_t n, char *out) {
    if (dtype == FLOAT16) STORE(uint16_t, float16_bits(x[i]));
    STORE(uint16_t, bfloat16_bits(x[i]));
}

/* Ones and zeros. */
static void store_bits(enum dtype dtype, const uint8_t *x, ssize_t n, char *out) {
    switch (dtype) {
    case FLOAT16: STORE(uint16_t, x[i] ? 0x3C00 : 0);
    case BFLOAT16: STORE(uint16_t, x[i] ? 0x3F80 : 0);
    case FLOAT32: STORE(float, x[i]);
    case FLOAT64: STORE(double, x[i]);
    default: break;
    }
    switch (size_of(dtype)) {
    case 2: STORE(uint16_t, x[i]);
    case 4: STORE(uint32_t, x[i]);
    default: STORE(uint64_t, x[i]);
    }
}

/* Integers that the type holds, modulo 2^64; `wide` if they are not signed. */
static void store_integers(enum dtype dtype, const uint64_t *x, bool wide, ssize_t n, char *out) {
    switch (dtype) {
    case BOOL: STORE(uint8_t, x[i] != 0);
    case FLOAT16: STORE(uint16_t, float16_bits(wide ? (float)x[i] : (float)(int64_t)x[i]));
    case BFLOAT16: STORE(uint16_t, bfloat16_bits(wide ? (float)x[i] : (float)(int64_t)x[i]));
    case FLOAT32: STORE(float, wide ? (float)x[i] : (float)(int64_t)x[i]);
    case FLOAT64: STORE(double, wide ? (double)x[i] : (double)(int64_t)x[i]);
    default: break;
    }
    switch (size_of(dtype)) {
    case 1: STORE(uint8_t, (uint8_t)x[i]);
    case 2: STORE(uint16_t, (uint16_t)x[i]);
    default: STORE(uint32_t, (uint32_t)x[i]);
    }
}

/* Counts, not above the largest float64 that an integer type holds. */
static void store_counts(enum dtype dtype, const double *x, ssize_t n, char *out) {
    switch (dtype) {
    case FLOAT16: STORE(uint16_t, float16_bits((float)x[i]));
    case BFLOAT16: STORE(uint16_t, bfloat16_bits((float)x[i]));
    case FLOAT32: STORE(float, (float)x[i]);
    case INT8: STORE(int8_t, (int8_t)(x[i] < 0x1p7 ? x[i] : 0x7F));
    case UINT8: STORE(uint8_t, (uint8_t)(x[i] < 0x1p8 ? x[i] : 0xFF));
    case INT16: STORE(int16_t, (int16_t)(x[i] < 0x1p15 ? x[i] : 0x7FFF));
    case UINT16: STORE(uint16_t, (uint16_t)(x[i] < 0x1p16 ? x[i] : 0xFFFF));
    case INT32: STORE(int32_t, (int32_t)(x[i] < 0x1p31 ? x[i] : 0x7FFFFFFF));
    case UINT32: STORE(uint32_t, (uint32_t)(x[i] < 0x1p32 ? x[i] : 0xFFFFFFFF));
    case INT64: STORE(int64_t, (int64_t)(x[i] < 0x1p63 ? x[i] : 0x1.FFFFFFFFFFFFFp62));
    default: STORE(uint64_t, (uint64_t)(x[i] < 0x1p64 ? x[i] : 0x1.FFFFFFFFFFFFFp63));
    }
}

/* -- drawing -- */
enum { CHUNK = 128 }; /* blocks that are made at once: their words and values stay in the first cache */

/* Computes the n elements numbered from `first` on from their words. */
typedef void (*kind)(const void *options, ssize_t first, ssize_t n, const uint64_t *words, void *out);

struct draw {
    uint64_t seed, offset;
    char *out;
    ssize_t count;      /* elements, */
    int per_block;      /* so many from a block, */
    enum dtype dtype;   /* stored in this type */
    enum dtype compute; /* and computed in this one: FLOAT32, FLOAT64, UINT64, INT64, or BOOL for bits */
    kind kind;
    const void *options;
};

static void store(const struct draw *draw, const void *values, ssize_t n, char *out) {
    if (draw->compute == FLOAT32) store_floats(draw->dtype, values, n, out);
    else if (draw->compute == FLOAT64) store_counts(draw->dtype, values, n, out);
    else if (draw->compute == BOOL) store_bits(draw->dtype, values, n, out);
    else store_integers(draw->dtype, values, draw->compute == UINT64, n, out);
}

static void draw_blocks(void *context, ssize_t begin, ssize_t end) {
    const struct draw *draw = context;
    _Alignas(64) uint64_t words[2 * CHUNK], values[2 * CHUNK]; /* two long words, or four short ones, in a block */
    for (ssize_t block = begin; block < end; block += CHUNK) {
        ssize_t blocks = end - block < CHUNK ? end - block : CHUNK, first = block * draw->per_block;
        ssize_t n = blocks * draw->per_block < draw->count - first ? blocks * draw->per_block : draw->count - first;
        char *out = draw->out + first * (ssize_t)size_of(draw->dtype);
        philox(draw->seed, draw->offset + (uint64_t)block, blocks, words);
        if (draw->compute == draw->dtype) {
            draw->kind(draw->options, first, n, words, out);
        } else {
            draw->kind(draw->options, first, n, words, values);
            store(draw, values, n, out);
        }
    }
}

/* Fill an array with numbers of a kind, whose elements cost so many steps; its own type and stream are filled in here. */
static enum status fill(array y, uint64_t seed, uint64_t offset, struct draw draw, ssize_t cost) {
    if (!is_contiguous(y)) return WRONG_SHAPE;
    draw.seed = seed;
    draw.offset = offset;
    draw.out = y->data;
    ssize_t blocks = (draw.count + draw.per_block - 1) / draw.per_block;
    parallel_for(blocks, grain_for(draw.per_block * cost), draw_blocks, &draw);
    return OK;
}

/* As `fill` for a floating kind: real or, as twice as many, complex numbers. */
static enum status fill_floating(array y, uint64_t seed, uint64_t offset, kind f32, kind f64, const void *options,
                                 ssize_t cost) {
    struct draw draw = {.dtype = dtype_of(y), .count = count_of(y), .options = options};
    switch (draw.dtype) {
    case COMPLEX64:
    case COMPLEX128:
        draw.count *= 2;
        draw.dtype = draw.dtype == COMPLEX64 ? FLOAT32 : FLOAT64;
        break;
    case FLOAT16:
    case BFLOAT16:
    case FLOAT32:
    case FLOAT64: break;
    default: return WRONG_DTYPE;
    }
    draw.compute = draw.dtype == FLOAT64 ? FLOAT64 : FLOAT32;
    draw.kind = draw.dtype == FLOAT64 ? f64 : f32;
    draw.per_block = draw.dtype == FLOAT64 ? 2 : 4;
    return fill(y, seed, offset, draw, cost);
}

static bool is_complex(array y) { return dtype_of(y) == COMPLEX64 || dtype_of(y) == COMPLEX128; }

int uniform_at(uint64_t seed, uint64_t offset, double bottom, double span, double largest, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    array y = ARRAY(output);
    enum dtype dtype = dtype_of(y);
    struct uniform options = {bottom, span, largest, dtype == FLOAT16 ? 11 : dtype == BFLOAT16 ? 8 : BITS_f32};
    return fill_floating(y, seed, offset, uniform_f32, uniform_f64, &options, 2);
}

int normal_at(uint64_t seed, uint64_t offset, double mean, double std, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    array y = ARRAY(output);
    struct normal options = {is_complex(y) ? -1 : -2, mean, is_complex(y) ? 0 : mean, std};
    return fill_floating(y, seed, offset, normal_f32, normal_f64, &options, 8);
}

int log_normal_at(uint64_t seed, uint64_t offset, double mean, double std, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    struct normal options = {-2, mean, mean, std};
    return is_complex(ARRAY(output)) ? WRONG_DTYPE
         : fill_floating(ARRAY(output), seed, offset, log_normal_f32, log_normal_f64, &options, 12);
}

int exponential_at(uint64_t seed, uint64_t offset, double lambd, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    return is_complex(ARRAY(output)) ? WRONG_DTYPE
         : fill_floating(ARRAY(output), seed, offset, exponential_f32, exponential_f64, &lambd, 6);
}

int cauchy_at(uint64_t seed, uint64_t offset, double median, double sigma, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    struct cauchy options = {median, sigma};
    return is_complex(ARRAY(output)) ? WRONG_DTYPE
         : fill_floating(ARRAY(output), seed, offset, cauchy_f32, cauchy_f64, &options, 8);
}

int geometric_at(uint64_t seed, uint64_t offset, double p, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    double log_failure = p < 1 ? (log1p)(-p) : -INFINITY;
    array y = ARRAY(output);
    struct draw draw = {.dtype = dtype_of(y), .count = count_of(y), .per_block = 2, .compute = FLOAT64, .kind = geometric,
                        .options = &log_failure};
    if (draw.dtype == BOOL || is_complex(y) || draw.dtype == NO_DTYPE) return WRONG_DTYPE;
    return fill(y, seed, offset, draw, 8);
}

int integers_at(uint64_t seed, uint64_t offset, uint64_t low, uint64_t span, int is_signed, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    struct integers options = {low, span};
    array y = ARRAY(output);
    struct draw draw = {.dtype = dtype_of(y), .count = count_of(y), .per_block = 2, .compute = is_signed ? INT64 : UINT64,
                        .kind = integers, .options = &options};
    if (is_complex(y) || draw.dtype == NO_DTYPE) return WRONG_DTYPE;
    if (draw.dtype == INT64 || draw.dtype == UINT64) draw.compute = draw.dtype; /* the same bits */
    return fill(y, seed, offset, draw, 4);
}

/* The numerators of U below this one are those of U < p. */
static uint64_t threshold(double p, int bits) {
    return p > 0 ? (uint64_t)ceil((p < 1 ? p : 1) * (double)(1ull << bits)) : 0;
}

int bernoulli_at(double p, uintptr_t probabilities, uint64_t seed, uint64_t offset, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    array y = ARRAY(output), q = ARRAY(probabilities);
    enum dtype dtype = dtype_of(y);
    bool wide = dtype == FLOAT64;
    struct bernoulli options = {wide ? threshold(p, BITS_f64) : threshold((double)(float)p, BITS_f32), q ? q->data : NULL};
    struct draw draw = {.dtype = dtype, .count = count_of(y), .per_block = wide ? 2 : 4, .compute = BOOL,
                        .options = &options};
    if (is_complex(y) || dtype == NO_DTYPE) return WRONG_DTYPE;
    if (q && dtype_of(q) != (wide ? FLOAT64 : FLOAT32)) return WRONG_DTYPE;
    if (q && (!same_shape(q, y) || !is_contiguous(q))) return WRONG_SHAPE;
    if (size_of(dtype) == 1) draw.dtype = BOOL; /* ones and zeros alike */
    draw.kind = q ? (wide ? keep_by_array_f64 : keep_by_array_f32) : wide ? keep_f64 : keep_f32;
    return fill(y, seed, offset, draw, 2);
}

/* Dropout of half types, whose elements are widened a chunk at a time. */
static void dropout_halves(const void *options, ssize_t first, ssize_t n, const uint64_t *words, void *out) {
    struct dropout part = *(const struct dropout *)options;
    float x[4 * CHUNK];
    part.half.widen(n, (const uint16_t *)part.input + first, x);
    part.input = (const char *)x, part.mask += first;
    dropout_f32(&part, 0, n, words, out);
}

static void masked_halves(void *context, ssize_t begin, ssize_t end) {
    enum { PART = 4 * CHUNK };
    const struct dropout *job = context;
    float x[PART], y[PART];
    for (ssize_t i = begin, n; i < end; i += n) {
        n = end - i < PART ? end - i : PART;
        struct dropout part = *job;
        part.input = (const char *)x, part.mask += i, part.output = (char *)y;
        job->half.widen(n, (const uint16_t *)job->input + i, x);
        masked_f32(&part, 0, n);
        job->half.narrow(n, y, (uint16_t *)job->output + i);
    }
}

int masked_dropout(uintptr_t input, double p, uint64_t seed, uint64_t offset, uintptr_t output, uintptr_t mask) {
    if (!WRITABLE(output, mask)) return READ_ONLY;
    array x = ARRAY(input), y = ARRAY(output), m = ARRAY(mask);
    enum dtype dtype = dtype_of(x);
    bool wide = dtype == FLOAT64;
    struct half half = half_of(dtype);
    if ((dtype != FLOAT32 && !wide && !half.widen) || dtype_of(y) != dtype || dtype_of(m) != BOOL) return WRONG_DTYPE;
    if (!same_shape(x, y) || !same_shape(x, m) || !is_contiguous(x) || !is_contiguous(m)) return WRONG_SHAPE;
    struct dropout options = {x->data, (uint8_t *)m->data, y->data, p == 1 ? 0 : 1 / (1 - p),
                              wide ? threshold(1 - p, BITS_f64) : threshold((double)(float)(1 - p), BITS_f32), half};
    return fill_floating(y, seed, offset, half.widen ? dropout_halves : dropout_f32, dropout_f64, &options, 3);
}

int masked_dropout_backward(uintptr_t grad, uintptr_t mask, double p, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    array g = ARRAY(grad), m = ARRAY(mask), y = ARRAY(output);
    enum dtype dtype = dtype_of(g);
    struct half half = half_of(dtype);
    if ((dtype != FLOAT32 && dtype != FLOAT64 && !half.widen) || dtype_of(y) != dtype || dtype_of(m) != BOOL)
        return WRONG_DTYPE;
    if (!same_shape(g, m) || !same_shape(g, y)) return WRONG_SHAPE;
    if (!is_contiguous(g) || !is_contiguous(m) || !is_contiguous(y)) return WRONG_SHAPE;
    struct dropout job = {.input = g->data, .mask = (uint8_t *)m->data, .output = y->data, .scale = p == 1 ? 0 : 1 / (1 - p), .half = half};
    range_task task = half.widen ? masked_halves : dtype == FLOAT32 ? masked_f32 : masked_f64;
    parallel_for(count_of(g), grain_for(2), task, &job);
    return OK;
}
