/* What the arrays of a convolution hold: real numbers, or half types, which are widened and narrowed by parts that fit the
 * caches. */
#ifndef COREFW_CONVOLUTION_STORAGE_H
#define COREFW_CONVOLUTION_STORAGE_H

#include "convolution/convolution_geometry.h"
#include "core/widening.h"
#include "gemm/gemm_tile.h"

#include <string.h>

#if defined(__F16C__) || defined(__AVX512F__)
#include <immintrin.h>
#endif

/* Copy the elements of a walk as real numbers: vectors of `channels` channels, `in_channel` apart in the input and next to
 * each other in the copy. */
typedef void laying_out(const struct walk *walk, ssize_t channels, ssize_t in_channel, const void *input, void *copy);

/* Of magnitudes. */
struct spread {
    double largest, total;
};

struct storage {
    enum dtype dtype;
    ssize_t size;     /* of an element */
    struct half half; /* of half types */
    laying_out *lay_out;
    struct spread (*measure)(ssize_t n, const void *elements);
};

static inline const void *element(const struct storage *s, const void *data, ssize_t index) {
    return (const char *)data + index * s->size;
}

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

static inline void store_halves(const struct storage *s, const vector_f32 *x, uint16_t *to) {
    if (s->dtype == BFLOAT16) store_bf16(*x, to);
    else store_f16(*x, to);
}

/* to[j] = from[j]; rows are too short for the library's function. */
static inline void copy_halves(ssize_t n, const uint16_t *from, uint16_t *to) {
#if defined(__AVX512F__)
    for (ssize_t j = 0; j < n; j += 32) {
        __mmask32 there = n - j < 32 ? (1u << (n - j)) - 1 : ~0u;
        _mm512_mask_storeu_epi16(to + j, there, _mm512_maskz_loadu_epi16(there, from + j));
    }
#else
    memcpy(to, from, (size_t)n * sizeof *to);
#endif
}

#endif
