/* Arrays of half types widened to float32 and narrowed to the nearest. */
#include "core/storage.h"

typedef uint16_t unaligned_half __attribute__((aligned(1), may_alias));
typedef float unaligned_float __attribute__((aligned(1), may_alias));

#if defined(__AVX2__)
/* Registers of halves and of floats, and fewer elements than these have. */
enum { WHOLE = REGISTER_BYTES / sizeof(float) };

#if defined(__AVX512F__)
#define FIRST(n) (__mmask16)((1u << (n)) - 1)

static inline void put(unaligned_float *to, register_floats x) { _mm512_storeu_ps(to, x); }
static inline register_floats floats_at(const unaligned_float *from) { return _mm512_loadu_ps(from); }

static inline void widen_part_f16(ssize_t n, const unaligned_half *s, unaligned_float *t) {
    _mm512_mask_storeu_ps(t, FIRST(n), _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(FIRST(n), s)));
}

static inline void widen_part_bf16(ssize_t n, const unaligned_half *s, unaligned_float *t) {
    __m512i words = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(FIRST(n), s));
    _mm512_mask_storeu_epi32(t, FIRST(n), _mm512_slli_epi32(words, 16));
}

static inline void narrow_part_f16(ssize_t n, const unaligned_float *s, unaligned_half *t) {
    __m512 floats = _mm512_maskz_loadu_ps(FIRST(n), s);
    _mm256_mask_storeu_epi16(t, FIRST(n), _mm512_cvtps_ph(floats, _MM_FROUND_TO_NEAREST_INT));
}
#else
static inline void put(unaligned_float *to, register_floats x) { _mm256_storeu_ps((float *)to, x); }
static inline register_floats floats_at(const unaligned_float *from) { return _mm256_loadu_ps((const float *)from); }

/* From four elements on, the first and the last four, which may have some in common. */
static inline void widen_part_f16(ssize_t n, const unaligned_half *s, unaligned_float *t) {
    for (ssize_t i = 0; n >= 4 && i < 2; i++, s += n - 4, t += n - 4)
        _mm_storeu_ps((float *)t, _mm_cvtph_ps(_mm_loadl_epi64((const void *)s)));
    for (ssize_t i = 0; n < 4 && i < n; i++) t[i] = float_of_float16(s[i]);
}

static inline void widen_part_bf16(ssize_t n, const unaligned_half *s, unaligned_float *t) {
    for (ssize_t i = 0; n >= 4 && i < 2; i++, s += n - 4, t += n - 4)
        _mm_storeu_si128((void *)t, _mm_slli_epi32(_mm_cvtepu16_epi32(_mm_loadl_epi64((const void *)s)), 16));
    for (ssize_t i = 0; n < 4 && i < n; i++) t[i] = float_of_bfloat16(s[i]);
}

static inline void narrow_part_f16(ssize_t n, const unaligned_float *s, unaligned_half *t) {
    for (ssize_t i = 0; n >= 4 && i < 2; i++, s += n - 4, t += n - 4)
        _mm_storel_epi64((void *)t, _mm_cvtps_ph(_mm_loadu_ps((const float *)s), _MM_FROUND_TO_NEAREST_INT));
    for (ssize_t i = 0; n < 4 && i < n; i++) t[i] = float16_bits(s[i]);
}
#endif

/* Whole registers, the last of which ends with the elements, or a part of one. */
#define CONVERT(n, i, whole, part) \
    _Pragma("GCC unroll 4") for (; i + WHOLE <= n; i += WHOLE) whole; \
    if (i < n && n > WHOLE) { \
        i = n - WHOLE; \
        whole; \
    } else if (i < n) { \
        part; \
    }

void widen_float16(ssize_t n, const void *halves, void *floats) {
    const unaligned_half *restrict s = halves;
    unaligned_float *restrict t = floats;
    ssize_t i = 0;
    CONVERT(n, i, put(t + i, load_f16((const void *)(s + i))), widen_part_f16(n, s, t))
}

void widen_bfloat16(ssize_t n, const void *halves, void *floats) {
    const unaligned_half *restrict s = halves;
    unaligned_float *restrict t = floats;
    ssize_t i = 0;
    CONVERT(n, i, put(t + i, load_bf16((const void *)(s + i))), widen_part_bf16(n, s, t))
}

void narrow_float16(ssize_t n, const void *floats, void *halves) {
    const unaligned_float *restrict s = floats;
    unaligned_half *restrict t = halves;
    ssize_t i = 0;
    CONVERT(n, i, store_f16(floats_at(s + i), (void *)(t + i)), narrow_part_f16(n, s, t))
}
#else
void widen_float16(ssize_t n, const void *halves, void *floats) {
    const unaligned_half *restrict s = halves;
    unaligned_float *restrict t = floats;
    for (ssize_t i = 0; i < n; i++) t[i] = float_of_float16(s[i]);
}

void widen_bfloat16(ssize_t n, const void *halves, void *floats) {
    const unaligned_half *restrict s = halves;
    unaligned_float *restrict t = floats;
    for (ssize_t i = 0; i < n; i++) t[i] = float_of_bfloat16(s[i]);
}

void narrow_float16(ssize_t n, const void *floats, void *halves) {
    const unaligned_float *restrict s = floats;
    unaligned_half *restrict t = halves;
    for (ssize_t i = 0; i < n; i++) t[i] = float16_bits(s[i]);
}
#endif

void narrow_bfloat16(ssize_t n, const void *floats, void *halves) {
    const unaligned_float *restrict s = floats;
    unaligned_half *restrict t = halves;
    ssize_t i = 0;
#if defined(__AVX2__) && !defined(__AVX512F__)
    for (; i + 2 * WHOLE <= n; i += 2 * WHOLE) store_two_bf16(floats_at(s + i), floats_at(s + i + WHOLE), (void *)(t + i));
#endif
    for (; i < n; i++) t[i] = bfloat16_bits(s[i]);
}
