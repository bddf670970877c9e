/* The product of int8 on any processor: panels are widened to pairs of int16, neighbours along k, while they are packed. */
#include "core/threads.h"
#include "gemm/gemm_packed.h"

#include <stdint.h>
#include <string.h>

#include "gemm/gemm_tile.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef int32_t sums_vector __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
typedef uint32_t bits __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));

enum {
    LANES = VECTOR_BYTES / 4,
    COLUMNS = TILE_VECTORS * LANES,
    FEW = 4, /* rows at most for which the right factor is not worth packing */
};

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

static void multiply_bytes(ssize_t k, const void *left, ssize_t line, const void *right, int rows, int columns,
                           bool more, void *sums, const void *next) {
    (void)line, (void)next, (void)rows, (void)columns;
    const int32_t *a = left, *b = right;
    int32_t *sum = sums;
    bits total[TILE_ROWS][TILE_VECTORS]; /* which may overflow */
    UNROLL for (int i = 0; i < TILE_ROWS; i++)
        UNROLL for (int j = 0; j < TILE_VECTORS; j++)
            total[i][j] = more ? *(bits *)(sum + i * COLUMNS + j * LANES) : (bits){0};
    for (ssize_t l = 0; l < k; l += 2, a += TILE_ROWS, b += COLUMNS)
        UNROLL for (int i = 0; i < TILE_ROWS; i++)
            UNROLL for (int j = 0; j < TILE_VECTORS; j++)
                total[i][j] += (bits)multiply_pairs((sums_vector){0} + a[i], *(const sums_vector *)(b + j * LANES));
    UNROLL for (int i = 0; i < TILE_ROWS; i++)
        UNROLL for (int j = 0; j < TILE_VECTORS; j++) *(bits *)(sum + i * COLUMNS + j * LANES) = total[i][j];
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

static bool put_floats(const struct product *p, ssize_t row, ssize_t column, int rows, int columns, const void *sums) {
    return put_dequantized(p, row, column, rows, columns, sums, COLUMNS), true;
}

#define ENGINE(put_sums)                                                                                               \
    {                                                                                                                  \
        .rows = TILE_ROWS, .least_rows = TILE_ROWS, .columns = COLUMNS, .unit = 2, .depth = 1024, .stretch = 1024,     \
        .size = 1, .left_bytes = TILE_ROWS * sizeof(uint32_t), .right_bytes = COLUMNS * sizeof(uint32_t),              \
        .pack_left = pack_left, .pack_right = pack_right, .multiply = multiply_bytes, .put = put_sums,                 \
    }

bool multiply_i8(const struct product *p) {
    static const struct engine engine = ENGINE(put);
    return multiply_packed(p, &engine);
}

/* -- few rows, by dot products -- */
static int32_t dot(ssize_t k, const int8_t *restrict a, const int8_t *restrict b) {
    int32_t sum = 0;
    for (ssize_t l = 0; l < k; l++) sum = (int32_t)((uint32_t)sum + (uint32_t)(a[l] * b[l])); /* may overflow */
    return sum;
}

static void multiply_by_dots(void *context, ssize_t begin, ssize_t end) {
    const struct product *p = context;
    for (ssize_t j = begin; j < end; j++)
        for (ssize_t i = 0; i < p->m; i++) {
            int32_t sum = dot(p->k, (const int8_t *)p->a + i * p->a_row, (const int8_t *)p->b + j * p->b_column);
            put_dequantized(p, i, j, 1, 1, &sum, 1);
        }
}

bool multiply_i8_to_floats(const struct product *p) {
    static const struct engine engine = ENGINE(put_floats);
    if (p->m > FEW || p->a_column != 1 || p->b_row != 1) return multiply_packed(p, &engine);
    parallel_for(p->n, grain_for(p->m * p->k / 4), multiply_by_dots, (void *)p);
    return true;
}
