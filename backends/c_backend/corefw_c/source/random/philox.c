/* Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011), one block in each
 * 64-bit lane of a vector. */
#include "random/philox.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
enum { LANES = 8 };
#define LOW_HALVES 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_HALVES 4, 12, 5, 13, 6, 14, 7, 15
#elif defined(__AVX2__)
enum { LANES = 4 };
#define LOW_HALVES 0, 4, 1, 5
#define HIGH_HALVES 2, 6, 3, 7
#else
enum { LANES = 2 };
#define LOW_HALVES 0, 2
#define HIGH_HALVES 1, 3
#endif

typedef uint64_t lanes __attribute__((vector_size(LANES * 8)));
typedef uint64_t unaligned_lanes __attribute__((vector_size(LANES * 8), aligned(8)));

#if defined(__clang__)
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (lanes){__VA_ARGS__})
#endif

/* The 64-bit products of a factor and the low words of the lanes. */
static inline lanes product(lanes x, uint32_t factor) {
    lanes y = (lanes){0} + factor;
#if defined(__AVX512F__)
    return (lanes)_mm512_mul_epu32((__m512i)x, (__m512i)y);
#elif defined(__AVX2__)
    return (lanes)_mm256_mul_epu32((__m256i)x, (__m256i)y);
#elif defined(__SSE2__)
    return (lanes)_mm_mul_epu32((__m128i)x, (__m128i)y);
#else
    return (x & 0xFFFFFFFF) * y;
#endif
}

void philox(uint64_t seed, uint64_t block, ssize_t count, uint64_t *words) {
    lanes number, low_word = (lanes){0} + 0xFFFFFFFF;
    for (int l = 0; l < LANES; l++) number[l] = block + (uint64_t)l;
    for (ssize_t i = 0; i < count; i += LANES, number += LANES, words += 2 * LANES) {
        /* the high words of c0 to c3 are arbitrary: products do not read them */
        lanes c0 = number, c1 = number >> 32, c2 = {0}, c3 = {0};
        uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
        for (int round = 0; round < 10; round++, k0 += 0x9E3779B9, k1 += 0xBB67AE85) {
            lanes p0 = product(c0, 0xD2511F53), p1 = product(c2, 0xCD9E8D57);
            c0 = p1 >> 32 ^ c1 ^ k0;
            c1 = p1;
            c2 = p0 >> 32 ^ c3 ^ k1;
            c3 = p0;
        }
        lanes first = (c0 & low_word) | c1 << 32, second = (c2 & low_word) | c3 << 32;
        ((unaligned_lanes *)words)[0] = SHUFFLE(first, second, LOW_HALVES);
        ((unaligned_lanes *)words)[1] = SHUFFLE(first, second, HIGH_HALVES);
    }
}
