/* Elementwise loops that work on the bits of numbers: the signs of half types, as they are stored, and neighbours. */
#include "elementwise/elementwise.h"

#include <string.h>

typedef uint16_t __attribute__((may_alias)) half;

#define BITS_1(name, formula) \
    static void span_##name(intptr_t n, char *const *in, char *out) { \
        const half *a = (const half *)in[0]; \
        half *results = (half *)out; \
        INDEPENDENT for (intptr_t i = 0; i < n; i++) results[i] = (half)(formula); \
    }
#define BITS_2(name, formula) \
    static void span_##name(intptr_t n, char *const *in, char *out) { \
        const half *a = (const half *)in[0], *b = (const half *)in[1]; \
        half *results = (half *)out; \
        INDEPENDENT for (intptr_t i = 0; i < n; i++) results[i] = (half)(formula); \
    }

BITS_1(abs, a[i] & 0x7FFF)
BITS_1(neg, a[i] ^ 0x8000)
BITS_2(copysign, (a[i] & 0x7FFF) | (b[i] & 0x8000))

/* The number next to x on the way to y; one after the other as integers are those of one sign. */
#define NEXT(name, T, U, SIGN) \
    static inline T name##_one(T x, T y) { \
        U bits, sign, least = 1; \
        memcpy(&bits, &x, sizeof bits); \
        memcpy(&sign, &y, sizeof sign); \
        U next = x == 0 ? (U)((sign & SIGN) | least) : (U)(bits + ((x < y) == (x > 0) ? 1 : (U)-1)); \
        T result; \
        memcpy(&result, &next, sizeof result); \
        return x != x || y != y ? x + y : x == y ? y : result; \
    } \
    static void span_##name(intptr_t n, char *const *in, char *out) { \
        const T *a = (const T *)in[0], *b = (const T *)in[1]; \
        T *results = (T *)out; \
        INDEPENDENT for (intptr_t i = 0; i < n; i++) results[i] = name##_one(a[i], b[i]); \
    }

NEXT(next_f32, float, uint32_t, UINT32_C(1) << 31)
NEXT(next_f64, double, uint64_t, UINT64_C(1) << 63)

#define ROW_1(D, name) {#name, 1, 0, 1, {D, 0, 0, 0, 0, D}, span_##name, NULL, NULL, 1, NULL, NULL}
#define ROW_2(D, name) {#name, 2, 0, 1, {D, D, 0, 0, 0, D}, span_##name, NULL, NULL, 1, NULL, NULL}

const struct elementwise_loop loops_bits[] = {
    ROW_1(FLOAT16, abs), ROW_1(BFLOAT16, abs), ROW_1(FLOAT16, neg), ROW_1(BFLOAT16, neg),
    ROW_2(FLOAT16, copysign), ROW_2(BFLOAT16, copysign),
    {"nextafter", 2, 0, 2, {FLOAT32, FLOAT32, 0, 0, 0, FLOAT32}, span_next_f32, NULL, NULL, 1, NULL, NULL},
    {"nextafter", 2, 0, 2, {FLOAT64, FLOAT64, 0, 0, 0, FLOAT64}, span_next_f64, NULL, NULL, 1, NULL, NULL}, {NULL, 0, 0, 0, {0}, NULL, NULL, NULL, 0, NULL, NULL},
};
