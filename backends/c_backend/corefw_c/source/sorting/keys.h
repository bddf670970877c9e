/* Keys: unsigned integers in the order of the elements that they stand for. Negative zero is zero, NaN the largest. */
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

static inline bool has_keys(enum dtype d) { return d <= UINT64 || d == FLOAT32 || d == FLOAT64; }

/* Whether the keys of a contiguous array's elements fit in 32 bits. */
bool has_narrow_keys(array a);

/* The keys of x[n], whose elements are `stride` elements apart, each changed by ^ flip. */
void narrow_keys(enum dtype d, const void *x, ssize_t n, ssize_t stride, uint32_t flip, uint32_t *keys);
void wide_keys(enum dtype d, const void *x, ssize_t n, ssize_t stride, uint64_t flip, uint64_t *keys);

#endif
