/* Arrays of half types widened to float32 and narrowed to the nearest. */
#include "core/storage.h"

typedef uint16_t unaligned_half __attribute__((aligned(1), may_alias));
typedef float unaligned_float __attribute__((aligned(1), may_alias));

void widen_float16(ssize_t n, const void *halves, void *floats) {
    const unaligned_half *restrict s = halves;
    unaligned_float *restrict t = floats;
    ssize_t i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= n; i += 16) _mm512_storeu_ps(t + i, _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(s + i))));
#elif defined(__F16C__)
#pragma GCC unroll 4
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps((float *)(t + i), _mm256_cvtph_ps(_mm_loadu_si128((const void *)(s + i))));
#endif
    for (; i < n; i++) t[i] = float_of_float16(s[i]);
}

void narrow_float16(ssize_t n, const void *floats, void *halves) {
    const unaligned_float *restrict s = floats;
    unaligned_half *restrict t = halves;
    ssize_t i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= n; i += 16)
        _mm256_storeu_si256((void *)(t + i), _mm512_cvtps_ph(_mm512_loadu_ps(s + i), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__)
#pragma GCC unroll 4
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((void *)(t + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps((const float *)(s + i)), _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; i < n; i++) t[i] = float16_bits(s[i]);
}

void widen_bfloat16(ssize_t n, const void *halves, void *floats) {
    const unaligned_half *restrict s = halves;
    unaligned_float *restrict t = floats;
    for (ssize_t i = 0; i < n; i++) t[i] = float_of_bfloat16(s[i]);
}

void narrow_bfloat16(ssize_t n, const void *floats, void *halves) {
    const unaligned_float *restrict s = floats;
    unaligned_half *restrict t = halves;
    ssize_t i = 0;
#if defined(__AVX2__) && !defined(__AVX512F__)
    for (; i + 16 <= n; i += 16)
        store_two_bf16(_mm256_loadu_ps((const float *)(s + i)), _mm256_loadu_ps((const float *)(s + i + 8)), (uint16_t *)(t + i));
#endif
    for (; i < n; i++) t[i] = bfloat16_bits(s[i]);
}
