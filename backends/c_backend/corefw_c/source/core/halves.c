/* Arrays of half types widened to float32 and narrowed to the nearest. */
#include "core/halves.h"

#if defined(__F16C__) || defined(__AVX2__)
#include <immintrin.h>
#endif

typedef uint16_t unaligned_half __attribute__((aligned(1), may_alias));
typedef float unaligned_float __attribute__((aligned(1), may_alias));

void widen_float16(ssize_t n, const void *halves, void *floats) {
    const unaligned_half *restrict s = halves;
    unaligned_float *restrict t = floats;
    ssize_t i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= n; i += 16) _mm512_storeu_ps(t + i, _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(s + i))));
#elif defined(__F16C__)
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

#if defined(__AVX2__) && !defined(__AVX512F__)
/* bfloat16_bits of 8 numbers, of which none is NaN, in 32 bits each. */
static inline __m256i rounded_bfloat16(__m256 x) {
    __m256i bits = _mm256_castps_si256(x), odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    return _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7FFF)), odd), 16);
}

/* The same numbers, but for NaN, of which what bfloat16_bits keeps, so that it is not rounded. */
static inline __m256 quiet_bfloat16(__m256 x) {
    __m256 sign = _mm256_and_ps(x, _mm256_set1_ps(-0.0f)), nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FC00000));
    return _mm256_blendv_ps(x, _mm256_or_ps(sign, nan), _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}
#endif

void narrow_bfloat16(ssize_t n, const void *floats, void *halves) {
    const unaligned_float *restrict s = floats;
    unaligned_half *restrict t = halves;
    ssize_t i = 0;
#if defined(__AVX2__) && !defined(__AVX512F__)
    for (; i + 16 <= n; i += 16) {
        __m256 low = _mm256_loadu_ps((const float *)(s + i)), high = _mm256_loadu_ps((const float *)(s + i + 8));
        if (_mm256_movemask_ps(_mm256_cmp_ps(low, high, _CMP_UNORD_Q)))
            low = quiet_bfloat16(low), high = quiet_bfloat16(high);
        __m256i pairs = _mm256_packus_epi32(rounded_bfloat16(low), rounded_bfloat16(high)); /* lane by lane of 128 bits */
        _mm256_storeu_si256((void *)(t + i), _mm256_permute4x64_epi64(pairs, 0xD8));
    }
#endif
    for (; i < n; i++) t[i] = bfloat16_bits(s[i]);
}
