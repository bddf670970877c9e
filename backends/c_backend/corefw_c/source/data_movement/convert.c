/* Conversion between element types, as NumPy converts: half types by way of float32, rounded to the nearest. */
#include "core/halves.h"
#include "core/strided.h"

#include <string.h>

typedef void (*converter)(ssize_t n, const void *source, void *target);

/* -- numbers -- */
#define EACH_NUMBER(TO)                                                                                                \
    TO(BOOL, bool)                                                                                                     \
    TO(INT8, int8_t) TO(UINT8, uint8_t) TO(INT16, int16_t) TO(UINT16, uint16_t) TO(INT32, int32_t)                     \
        TO(UINT32, uint32_t) TO(INT64, int64_t) TO(UINT64, uint64_t) TO(FLOAT32, float) TO(FLOAT64, double)

#define AS(type, x) ((type)(x))
#define FROM uint8_t
#define OF_FROM(name) name##_bool8
#define READ(x) ((x) != 0)
#include "data_movement/convert.inc"
#undef READ
#define READ(x) (x)
#define FROM int8_t
#define OF_FROM(name) name##_i8
#include "data_movement/convert.inc"
#define FROM uint8_t
#define OF_FROM(name) name##_u8
#include "data_movement/convert.inc"
#define FROM int16_t
#define OF_FROM(name) name##_i16
#include "data_movement/convert.inc"
#define FROM uint16_t
#define OF_FROM(name) name##_u16
#include "data_movement/convert.inc"
#define FROM int32_t
#define OF_FROM(name) name##_i32
#include "data_movement/convert.inc"
#define FROM uint32_t
#define OF_FROM(name) name##_u32
#include "data_movement/convert.inc"
#define FROM int64_t
#define OF_FROM(name) name##_i64
#include "data_movement/convert.inc"
#define FROM uint64_t
#define OF_FROM(name) name##_u64
#include "data_movement/convert.inc"
/* Negative numbers wrap in wide unsigned types as in narrow ones, where vectors' own conversion gives the largest. */
#undef AS
#define AS(type, x)                                                                                                    \
    _Generic((type)0, uint32_t: (type)(int64_t)(x), uint64_t: (x) < 0 ? (type)(int64_t)(x) : (type)(x), default: (type)(x))
#define FROM float
#define OF_FROM(name) name##_f32
#include "data_movement/convert.inc"
#define FROM double
#define OF_FROM(name) name##_f64
#include "data_movement/convert.inc"

static const converter *const from_number[NO_DTYPE] = {
    [BOOL] = from_bool8, [INT8] = from_i8,     [UINT8] = from_u8,    [INT16] = from_i16,
    [UINT16] = from_u16, [INT32] = from_i32,   [UINT32] = from_u32,  [INT64] = from_i64,
    [UINT64] = from_u64, [FLOAT32] = from_f32, [FLOAT64] = from_f64,
};

/* -- half types -- */
/* Rounded once: what float32 drops of a number stays visible in the last bit that it keeps. */
static void doubles_to_half(ssize_t n, const void *source, void *target) {
    typedef double unaligned_double __attribute__((aligned(1), may_alias));
    typedef uint16_t unaligned_half __attribute__((aligned(1), may_alias));
    const uint64_t dropped = ((uint64_t)1 << 29) - 1;
    const unaligned_double *restrict s = source;
    unaligned_half *restrict t = target;
    for (ssize_t i = 0; i < n; i++) {
        uint64_t bits = bits_f64(s[i]);
        bits = (bits & ~dropped) | (uint64_t)((bits & dropped) != 0) << 29;
        t[i] = float16_bits((float)from_bits_f64(bits));
    }
}

/* -- any two types -- */
struct conversion {
    converter first, second; /* by way of float32 if there is a second */
    ssize_t from_size, to_size;
};

static bool find_conversion(enum dtype from, enum dtype to, struct conversion *found) {
    converter widen = from == FLOAT16 ? widen_float16 : from == BFLOAT16 ? widen_bfloat16 : NULL;
    converter narrow = to == FLOAT16 ? narrow_float16 : to == BFLOAT16 ? narrow_bfloat16 : NULL;
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
