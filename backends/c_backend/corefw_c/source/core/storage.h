/* Registers of elements as they lie in memory: real numbers, or half types, which are widened on their way from it and
 * rounded on their way back. Kernels that read elements many times take them so (each_storage.h), others by widening.h. */
#ifndef COREFW_STORAGE_H
#define COREFW_STORAGE_H

#include "core/halves.h"

#if defined(__F16C__) || defined(__AVX2__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define REGISTER_BYTES 64
#elif defined(__AVX2__)
#define REGISTER_BYTES 32
#else
#define REGISTER_BYTES 16
#endif

typedef float register_floats __attribute__((vector_size(REGISTER_BYTES)));
typedef uint32_t register_bits __attribute__((vector_size(REGISTER_BYTES)));
typedef uint16_t register_halves __attribute__((vector_size(REGISTER_BYTES / 2)));
typedef float unaligned_floats __attribute__((vector_size(REGISTER_BYTES), aligned(sizeof(float)), may_alias));
typedef double unaligned_doubles __attribute__((vector_size(REGISTER_BYTES), aligned(sizeof(double)), may_alias));
typedef register_halves unaligned_halves __attribute__((aligned(1), may_alias));

/* GCC widens and narrows whole registers in halves, which it takes apart and joins. */
static inline register_bits widen_words(register_halves words) {
#if defined(__AVX512F__)
    return (register_bits)_mm512_cvtepu16_epi32((__m256i)words);
#elif defined(__AVX2__)
    return (register_bits)_mm256_cvtepu16_epi32((__m128i)words);
#else
    return __builtin_convertvector(words, register_bits);
#endif
}

static inline register_halves narrow_words(register_bits words) {
#if defined(__AVX512F__)
    return (register_halves)_mm512_cvtepi32_epi16((__m512i)words);
#elif defined(__AVX2__)
    __m256i all = (__m256i)words;
    return (register_halves)_mm_packus_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
#else
    return __builtin_convertvector(words, register_halves);
#endif
}

static inline register_floats load_bf16(const uint16_t *from) {
    return (register_floats)(widen_words(*(const unaligned_halves *)from) << 16);
}

static inline void store_bf16(register_floats x, uint16_t *to) {
    register_bits bits = (register_bits)x, rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
    register_bits quiet = (bits >> 16 & 0x8000) | 0x7FC0;
#if defined(__AVX512F__)
    __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    *(unaligned_halves *)to = narrow_words((register_bits)_mm512_mask_mov_epi32((__m512i)rounded, nan, (__m512i)quiet));
#else
    register_bits nan = (register_bits)(x != x);
    *(unaligned_halves *)to = narrow_words((quiet & nan) | (rounded & ~nan));
#endif
}

/* Two registers of neighbouring elements. */
static inline void store_two_bf16(register_floats low, register_floats high, uint16_t *to) {
#if defined(__AVX2__) && !defined(__AVX512F__)
    register_bits quiet = (register_bits){0} + 0x7FC00000, sign = (register_bits){0} + 0x80000000;
    if (_mm256_movemask_ps(_mm256_cmp_ps(low, high, _CMP_UNORD_Q))) { /* NaN, of which rounding would make something else */
        low = _mm256_blendv_ps(low, (register_floats)(((register_bits)low & sign) | quiet), (register_floats)(low != low));
        high = _mm256_blendv_ps(high, (register_floats)(((register_bits)high & sign) | quiet), (register_floats)(high != high));
    }
    register_bits first = (register_bits)low, second = (register_bits)high;
    first = (first + 0x7FFF + (first >> 16 & 1)) >> 16, second = (second + 0x7FFF + (second >> 16 & 1)) >> 16;
    __m256i words = _mm256_packus_epi32((__m256i)first, (__m256i)second); /* in lanes of 128 bits */
    _mm256_storeu_si256((void *)to, _mm256_permute4x64_epi64(words, 0xD8));
#else
    store_bf16(low, to);
    store_bf16(high, to + sizeof low / sizeof low[0]);
#endif
}

static inline register_floats load_f16(const uint16_t *from) {
#if defined(__AVX512F__)
    return _mm512_cvtph_ps(_mm256_loadu_si256((const void *)from));
#elif defined(__F16C__)
    return _mm256_cvtph_ps(_mm_loadu_si128((const void *)from));
#else
    register_floats x;
    for (size_t i = 0; i < sizeof x / sizeof x[0]; i++) x[i] = float_of_float16(from[i]);
    return x;
#endif
}

static inline void store_f16(register_floats x, uint16_t *to) {
#if defined(__AVX512F__)
    _mm256_storeu_si256((void *)to, _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__)
    _mm_storeu_si128((void *)to, _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
#else
    for (size_t i = 0; i < sizeof x / sizeof x[0]; i++) to[i] = float16_bits(x[i]);
#endif
}

static inline void store_two_f16(register_floats low, register_floats high, uint16_t *to) {
    store_f16(low, to);
    store_f16(high, to + sizeof low / sizeof low[0]);
}

#endif
