/* What the arrays of a convolution hold: real numbers, or half types, which are widened and narrowed by parts that fit the
 * caches. */
#ifndef COREFW_CONVOLUTION_STORAGE_H
#define COREFW_CONVOLUTION_STORAGE_H

#include "convolution/convolution_geometry.h"
#include "core/storage.h"
#include "core/widening.h"
#include "gemm/gemm_tile.h"

#include <string.h>

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
