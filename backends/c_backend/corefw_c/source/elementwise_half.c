/* Half types widened to float and narrowed to the nearest, ties to even; NaN stays NaN. */
#include "elementwise.h"

#include <string.h>
#if defined(__F16C__)
#include <immintrin.h>
#endif

static inline uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float of_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The exponent's bias is mended by a product, which also makes subnormal numbers normal. */
static inline float widened(uint16_t half) {
    uint32_t magnitude = (half & 0x7fffu) << 13, sign = (half & 0x8000u) << 16;
    uint32_t bits = magnitude >= 0x7c00u << 13 ? magnitude | 0x7f800000 : bits_of(of_bits(magnitude) * 0x1p112f);
    return of_bits(bits | sign);
}

static inline uint16_t narrowed(float x) {
    uint32_t magnitude = bits_of(x) & 0x7fffffff, sign = bits_of(x) >> 16 & 0x8000;
    uint32_t normal = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
    uint32_t subnormal = bits_of(of_bits(magnitude) + 0.5f) - 0x3f000000; /* 0.5 has the spacing of these halves */
    uint32_t special = magnitude > 0x7f800000 ? 0x7e00 : 0x7c00;
    return (uint16_t)(sign | (magnitude >= 0x47800000 ? special : magnitude < 0x38800000 ? subnormal : normal));
}

void widen_float16(ssize_t n, const uint16_t *restrict halves, float *restrict out) {
    ssize_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= n; i += 8) _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const void *)(halves + i))));
#endif
    for (; i < n; i++) out[i] = widened(halves[i]);
}

void narrow_float16(ssize_t n, const float *restrict x, uint16_t *restrict halves) {
    ssize_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((void *)(halves + i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; i < n; i++) halves[i] = narrowed(x[i]);
}

void widen_bfloat16(ssize_t n, const uint16_t *restrict halves, float *restrict out) {
    for (ssize_t i = 0; i < n; i++) out[i] = of_bits((uint32_t)halves[i] << 16);
}

void narrow_bfloat16(ssize_t n, const float *restrict x, uint16_t *restrict halves) {
    for (ssize_t i = 0; i < n; i++) {
        uint32_t bits = bits_of(x[i]);
        uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
        halves[i] = (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : rounded);
    }
}
