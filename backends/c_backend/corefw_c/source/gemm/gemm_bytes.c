/* The product of int8 on any processor: panels are widened to pairs of int16, neighbours along k, while they are packed. */
#include "gemm/gemm_packed.h"

#include <stdint.h>
#include <string.h>

#include "gemm/gemm_tile.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef int32_t sums_vector __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));

enum { LANES = VECTOR_BYTES / 4, COLUMNS = TILE_VECTORS * LANES };

/* Lane by lane, the products of two pairs added up. */
static inline sums_vector multiply_pairs(sums_vector a, sums_vector b) {
#if defined(__AVX512BW__)
    return (sums_vector)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
    return (sums_vector)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined(__x86_64__)
    return (sums_vector)_mm_madd_epi16((__m128i)a, (__m128i)b);
#else
    return (a << 16 >> 16) * (b << 16 >> 16) + (a >> 16) * (b >> 16);
#endif
}

static void multiply_bytes(ssize_t k, const void *left, const void *right, int rows, int columns, bool more,
                           void *sums) {
    (void)rows, (void)columns;
    const int32_t *a = left, *b = right;
    int32_t *sum = sums;
    sums_vector total[TILE_ROWS][TILE_VECTORS];
    UNROLL for (int i = 0; i < TILE_ROWS; i++)
        UNROLL for (int j = 0; j < TILE_VECTORS; j++)
            total[i][j] = more ? *(sums_vector *)(sum + i * COLUMNS + j * LANES) : (sums_vector){0};
    for (ssize_t l = 0; l < k; l += 2, a += TILE_ROWS, b += COLUMNS)
        UNROLL for (int i = 0; i < TILE_ROWS; i++)
            UNROLL for (int j = 0; j < TILE_VECTORS; j++)
                total[i][j] += multiply_pairs((sums_vector){0} + a[i], *(const sums_vector *)(b + j * LANES));
    UNROLL for (int i = 0; i < TILE_ROWS; i++)
        UNROLL for (int j = 0; j < TILE_VECTORS; j++) *(sums_vector *)(sum + i * COLUMNS + j * LANES) = total[i][j];
}

static inline void pack(const int width, ssize_t k, int lines, const int8_t *source, ssize_t line, ssize_t along,
                        uint32_t *packed) {
    for (ssize_t l = 0; l < k; l += 2, packed += width)
        for (int i = 0; i < lines; i++) {
            const int8_t *pair = source + i * line + l * along;
            packed[i] = (uint16_t)pair[0] | (l + 1 < k ? (uint32_t)(uint16_t)pair[along] << 16 : 0);
        }
}

static void pack_left(ssize_t k, int lines, const void *source, ssize_t line, ssize_t along, void *packed) {
    pack(TILE_ROWS, k, lines, source, line, along, packed);
}

static void pack_right(ssize_t k, int lines, const void *source, ssize_t line, ssize_t along, void *packed) {
    pack(COLUMNS, k, lines, source, line, along, packed);
}

static bool put(const struct product *p, ssize_t row, ssize_t column, int rows, int columns, const void *sums) {
    return put_i32(p, row, column, rows, columns, sums, COLUMNS), true;
}

bool multiply_i8(const struct product *p) {
    static const struct engine engine = {
        .rows = TILE_ROWS, .columns = COLUMNS, .unit = 2, .depth = 1024, .stretch = 1024, .size = 1,
        .left_bytes = TILE_ROWS * sizeof(uint32_t), .right_bytes = COLUMNS * sizeof(uint32_t),
        .pack_left = pack_left, .pack_right = pack_right, .multiply = multiply_bytes, .put = put,
    };
    return multiply_packed(p, &engine);
}
