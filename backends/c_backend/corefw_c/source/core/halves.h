/* Half types widened to float32, and float32 rounded to them, to nearest even, without branches; NaN stays NaN. */
#ifndef COREFW_HALVES_H
#define COREFW_HALVES_H

#include "core/bits.h"

#include <stdint.h>
#include <sys/types.h>

/* n elements, which need not be aligned. */
void widen_float16(ssize_t n, const void *halves, void *floats);
void widen_bfloat16(ssize_t n, const void *halves, void *floats);
void narrow_float16(ssize_t n, const void *floats, void *halves);
void narrow_bfloat16(ssize_t n, const void *floats, void *halves);

static inline float float_of_bfloat16(uint16_t half) { return from_bits_f32((uint32_t)half << 16); }

static inline uint16_t bfloat16_bits(float x) {
    uint32_t bits = bits_f32(x);
    uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
    return (uint16_t)(x != x ? (bits >> 16 & 0x8000) | 0x7FC0 : rounded);
}

/* The exponent's bias is mended by a product, which also makes subnormal numbers normal. */
static inline float float_of_float16(uint16_t half) {
    uint32_t modulus = (half & 0x7FFFu) << 13, sign = (half & 0x8000u) << 16;
    uint32_t scaled = bits_f32(from_bits_f32(modulus) * 0x1p112f);
    return from_bits_f32(sign | (modulus >= 0x7C00u << 13 ? modulus | 0x7F800000 : scaled));
}

static inline uint16_t float16_bits(float x) {
    uint32_t bits = bits_f32(x), sign = bits >> 16 & 0x8000, modulus = bits & 0x7FFFFFFF;
    uint32_t normal = (modulus - (112u << 23) + 0xFFF + (modulus >> 13 & 1)) >> 13;
    /* below 2^-14 the last place of a float16 is that of a float32 beside 1/2: the sum rounds */
    uint32_t subnormal = bits_f32(from_bits_f32(modulus) + 0.5f) - bits_f32(0.5f);
    uint32_t finite = modulus < 113u << 23 ? subnormal : normal;
    uint32_t special = modulus > 0x7F800000 ? 0x7E00 : 0x7C00;
    return (uint16_t)(sign | (modulus >= 0x477FF000 ? special : finite));
}

#endif
