/* Vectors of numbers as they lie in memory: half types are widened to floats, and rounded to nearest even. */
#ifndef COREFW_GEMM_STORAGE_H
#define COREFW_GEMM_STORAGE_H

#include "core/halves.h"
#include "gemm/gemm_tile.h"

#if defined(__F16C__) || defined(__AVX512F__)
#include <immintrin.h>
#endif

/* A vector of halves as floats, and back. */
typedef uint16_t vector_halves __attribute__((vector_size(VECTOR_BYTES / 2)));
typedef vector_halves unaligned_halves __attribute__((aligned(1), may_alias));

static inline vector_f32 load_bf16(const uint16_t *from) {
    return (vector_f32)(__builtin_convertvector(*(const unaligned_halves *)from, vector_u32) << 16);
}

static inline void store_bf16(vector_f32 x, uint16_t *to) {
    vector_u32 bits = (vector_u32)x, rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
    vector_u32 nan = (vector_u32)(x != x), quiet = (bits >> 16 & 0x8000) | 0x7FC0;
    *(unaligned_halves *)to = __builtin_convertvector((quiet & nan) | (rounded & ~nan), vector_halves);
}

static inline vector_f32 load_f16(const uint16_t *from) {
#if defined(__AVX512F__)
    return _mm512_cvtph_ps(_mm256_loadu_si256((const void *)from));
#elif defined(__F16C__)
    return _mm256_cvtph_ps(_mm_loadu_si128((const void *)from));
#else
    vector_f32 x;
    for (int i = 0; i < LANES_f32; i++) x[i] = float_of_float16(from[i]);
    return x;
#endif
}

static inline void store_f16(vector_f32 x, uint16_t *to) {
#if defined(__AVX512F__)
    _mm256_storeu_si256((void *)to, _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__)
    _mm_storeu_si128((void *)to, _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
#else
    for (int i = 0; i < LANES_f32; i++) to[i] = float16_bits(x[i]);
#endif
}

#endif
