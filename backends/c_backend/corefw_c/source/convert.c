/* Conversion between element types, as NumPy converts: half types by way of float32, rounded to the nearest. */
#include "strided.h"

#include <string.h>
#if defined(__F16C__)
#include <immintrin.h>
#endif

typedef void (*converter)(ssize_t n, const void *source, void *target);

/* -- numbers -- */
#define EACH_NUMBER(TO)                                                                                        \
    TO(BOOL, bool) TO(INT8, int8_t) TO(UINT8, uint8_t) TO(INT16, int16_t) TO(UINT16, uint16_t)                 \
    TO(INT32, int32_t) TO(UINT32, uint32_t) TO(INT64, int64_t) TO(UINT64, uint64_t) TO(FLOAT32, float)         \
    TO(FLOAT64, double)

#define FROM int8_t
#define OF_FROM(name) name##_i8
#include "convert.inc"
#define FROM uint8_t /* also of bool, which is 0 or 1 */
#define OF_FROM(name) name##_u8
#include "convert.inc"
#define FROM int16_t
#define OF_FROM(name) name##_i16
#include "convert.inc"
#define FROM uint16_t
#define OF_FROM(name) name##_u16
#include "convert.inc"
#define FROM int32_t
#define OF_FROM(name) name##_i32
#include "convert.inc"
#define FROM uint32_t
#define OF_FROM(name) name##_u32
#include "convert.inc"
#define FROM int64_t
#define OF_FROM(name) name##_i64
#include "convert.inc"
#define FROM uint64_t
#define OF_FROM(name) name##_u64
#include "convert.inc"
#define FROM float
#define OF_FROM(name) name##_f32
#include "convert.inc"
#define FROM double
#define OF_FROM(name) name##_f64
#include "convert.inc"

static const converter *const from_number[NO_DTYPE] = {
    [BOOL] = from_u8,    [INT8] = from_i8,    [UINT8] = from_u8,    [INT16] = from_i16,   [UINT16] = from_u16, [INT32] = from_i32,
    [UINT32] = from_u32, [INT64] = from_i64, [UINT64] = from_u64, [FLOAT32] = from_f32, [FLOAT64] = from_f64,
};

/* -- half types -- */
typedef uint16_t unaligned_half __attribute__((aligned(1), may_alias));
typedef float unaligned_float __attribute__((aligned(1), may_alias));
typedef double unaligned_double __attribute__((aligned(1), may_alias));

static inline uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline float half_to_float(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, magnitude = half & 0x7fff;
    uint32_t scaled = bits_of(float_of(magnitude << 13) * 0x1p112f); /* also of subnormal numbers */
    return float_of(sign | (magnitude >= 0x7c00 ? 0x7f800000 | magnitude << 13 : scaled));
}

static inline uint16_t float_to_half(float x) {
    uint32_t bits = bits_of(x), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    uint32_t normal = (magnitude + 0xfff + (magnitude >> 13 & 1) - (112 << 23)) >> 13;
    uint32_t subnormal = bits_of(float_of(magnitude) + 0.5f) - 0x3f000000; /* 0.5 has the last place of half's smallest */
    uint32_t special = magnitude > 0x7f800000 ? 0x7e00 : 0x7c00;
    return (uint16_t)(sign | (magnitude >= 0x47800000 ? special : magnitude < 0x38800000 ? subnormal : normal));
}

static void half_to_floats(ssize_t n, const void *source, void *target) {
    const unaligned_half *restrict s = source;
    unaligned_float *restrict t = target;
    ssize_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= n; i += 8) _mm256_storeu_ps((float *)(t + i), _mm256_cvtph_ps(_mm_loadu_si128((const void *)(s + i))));
#endif
    for (; i < n; i++) t[i] = half_to_float(s[i]);
}

static void floats_to_half(ssize_t n, const void *source, void *target) {
    const unaligned_float *restrict s = source;
    unaligned_half *restrict t = target;
    ssize_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((void *)(t + i), _mm256_cvtps_ph(_mm256_loadu_ps((const float *)(s + i)), _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; i < n; i++) t[i] = float_to_half(s[i]);
}

/* Rounded once: what float32 drops of a number stays visible in the last bit that it keeps. */
static void doubles_to_half(ssize_t n, const void *source, void *target) {
    const uint64_t dropped = ((uint64_t)1 << 29) - 1;
    const unaligned_double *restrict s = source;
    unaligned_half *restrict t = target;
    for (ssize_t i = 0; i < n; i++) {
        double x = s[i];
        uint64_t bits;
        memcpy(&bits, &x, sizeof bits);
        bits = (bits & ~dropped) | (uint64_t)((bits & dropped) != 0) << 29;
        memcpy(&x, &bits, sizeof bits);
        t[i] = float_to_half((float)x);
    }
}

static void bfloat_to_floats(ssize_t n, const void *source, void *target) {
    const unaligned_half *restrict s = source;
    unaligned_float *restrict t = target;
    for (ssize_t i = 0; i < n; i++) t[i] = float_of((uint32_t)s[i] << 16);
}

static void floats_to_bfloat(ssize_t n, const void *source, void *target) {
    const unaligned_float *restrict s = source;
    unaligned_half *restrict t = target;
    for (ssize_t i = 0; i < n; i++) {
        uint32_t bits = bits_of(s[i]), rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
        t[i] = (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? (bits >> 16 & 0x8000) | 0x7fc0 : rounded);
    }
}

/* -- any two types -- */
struct conversion {
    converter first, second; /* by way of float32 if there is a second */
    ssize_t from_size, to_size;
};

static bool find_conversion(enum dtype from, enum dtype to, struct conversion *found) {
    converter widen = from == FLOAT16 ? half_to_floats : from == BFLOAT16 ? bfloat_to_floats : NULL;
    converter narrow = to == FLOAT16 ? floats_to_half : to == BFLOAT16 ? floats_to_bfloat : NULL;
    if (from >= COMPLEX64 || to >= COMPLEX64) return false;
    *found = (struct conversion){.from_size = (ssize_t)size_of(from), .to_size = (ssize_t)size_of(to)};
    if (from == FLOAT64 && to == FLOAT16) found->first = doubles_to_half;
    else if (widen && to == FLOAT32) found->first = widen;
    else if (narrow && from == FLOAT32) found->first = narrow;
    else if (widen || narrow) {
        found->first = widen ? widen : from_number[from][FLOAT32];
        found->second = narrow ? narrow : from_number[FLOAT32][to];
    } else found->first = from_number[from][to];
    return true;
}

/* Parts of rows that are not contiguous, or go by way of float32, pass through buffers. */
static void convert_plane(const void *context, const struct plane *p) {
    enum { PART = 512 };
    const struct conversion *c = context;
    char read[PART * sizeof(double)], written[PART * sizeof(double)];
    float between[PART];
    bool direct = p->source_step == c->from_size && p->target_step == c->to_size && !c->second;
    for (ssize_t i = 0; i < p->rows; i++) {
        const char *source = p->source + i * p->source_row;
        char *target = p->target + i * p->target_row;
        if (direct) {
            c->first(p->n, source, target);
            continue;
        }
        for (ssize_t j = 0, n; j < p->n; j += n, source += n * p->source_step, target += n * p->target_step) {
            n = p->n - j < PART ? p->n - j : PART;
            const char *given = source;
            char *result = p->target_step == c->to_size ? target : written;
            if (p->source_step != c->from_size) {
                copy_row(n, read, c->from_size, source, p->source_step, (size_t)c->from_size);
                given = read;
            }
            if (c->second) c->first(n, given, between), c->second(n, between, result);
            else c->first(n, given, result);
            if (result == written) copy_row(n, target, p->target_step, written, c->to_size, (size_t)c->to_size);
        }
    }
}

bool convert_strided(int ndim, const ssize_t *shape, char *target, const ssize_t *target_strides, enum dtype to,
                     const char *source, const ssize_t *source_strides, enum dtype from) {
    struct conversion conversion;
    if (!find_conversion(from, to, &conversion)) return false;
    for (int i = 0; i < ndim; i++)
        if (shape[i] == 0) return true;
    struct walk w = walk_over(ndim, shape, target, target_strides, source, source_strides);
    walk_planes(&w, convert_plane, &conversion, 16);
    return true;
}
