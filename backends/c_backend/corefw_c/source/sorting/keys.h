/* Keys: unsigned integers in the order of the elements that they stand for. Negative zero is zero, NaN the largest.
 * Those of half types have 16 bits, so that sorting by bytes has two of them to look at. */
#ifndef COREFW_KEYS_H
#define COREFW_KEYS_H

#include "core/array.h"
#include "core/bits.h"

static inline uint32_t key_of_f32(float x) {
    uint32_t bits = bits_f32(x + 0.0f); /* of positive zero, if it is negative */
    uint32_t key = bits ^ (0x80000000u | (uint32_t)((int32_t)bits >> 31));
    return x == x ? key : UINT32_MAX;
}

static inline uint64_t key_of_f64(double x) {
    uint64_t bits = bits_f64(x + 0.0);
    uint64_t key = bits ^ (0x8000000000000000u | (uint64_t)((int64_t)bits >> 63));
    return x == x ? key : UINT64_MAX;
}

/* Of a half type whose infinity has the bits `infinity`. */
static inline uint32_t key_of_half(uint16_t half, uint32_t infinity) {
    uint32_t modulus = half & 0x7FFFu, key = half >> 15 ? 0x8000u - modulus : 0x8000u + modulus;
    return modulus <= infinity ? key : UINT16_MAX;
}
enum { INFINITY_FLOAT16 = 0x7C00, INFINITY_BFLOAT16 = 0x7F80 };

static inline bool has_keys(enum dtype d) { return d <= FLOAT64; }

/* The key of NaN, which no other element has; false for types that have none. */
static inline bool key_of_nan(enum dtype d, uint64_t *key) {
    *key = d == FLOAT64 ? UINT64_MAX : d == FLOAT32 ? UINT32_MAX : UINT16_MAX;
    return d >= FLOAT16 && d <= FLOAT64;
}

/* Whether the keys of a contiguous array's elements fit in 32 bits. */
bool has_narrow_keys(array a);

/* The keys of x[n], whose elements are `stride` elements apart, each changed by ^ flip. */
void narrow_keys(enum dtype d, const void *x, ssize_t n, ssize_t stride, uint32_t flip, uint32_t *keys);
void wide_keys(enum dtype d, const void *x, ssize_t n, ssize_t stride, uint64_t flip, uint64_t *keys);

#endif
