/* Products of bfloat16 with the processor's dot products of pairs, AVX512-BF16: two multiplications where float has one.
 *
 * Both factors are packed as pairs of neighbours along k, which take the place of single elements in the tiles of
 * gemm.inc. Numbers below the normal ones, in factors and in sums, are zeros to these instructions. */
#include "gemm/gemm_packed.h"

#include <stdint.h>
#include <string.h>

#include "gemm/gemm_transpose.h"

#if defined(__AVX512F__)
#include <immintrin.h>

enum { LANES = 16, COLUMNS = TILE_VECTORS * LANES };

/* sums[height][COLUMNS] = (more ? sums : 0) + a b, for a: columns of TILE_ROWS pairs, b: rows of COLUMNS pairs; `height`
 * and `vectors` are constants. */
static inline __attribute__((always_inline, target("avx512bf16"))) void add_pairs(const int height, const int vectors,
                                                                                  ssize_t k, const uint32_t *a,
                                                                                  const uint32_t *b, bool more,
                                                                                  float *sum) {
    __m512 total[TILE_ROWS][TILE_VECTORS];
    UNROLL for (int i = 0; i < height; i++)
        UNROLL for (int j = 0; j < vectors; j++)
            total[i][j] = more ? _mm512_loadu_ps(sum + i * COLUMNS + j * LANES) : _mm512_setzero_ps();
    for (ssize_t l = 0; l < k; l += 2, a += TILE_ROWS, b += COLUMNS) {
        __m512bh pair[TILE_VECTORS];
        UNROLL for (int j = 0; j < vectors; j++) pair[j] = (__m512bh)_mm512_loadu_si512(b + j * LANES);
        UNROLL for (int i = 0; i < height; i++)
            UNROLL for (int j = 0; j < vectors; j++)
                total[i][j] = _mm512_dpbf16_ps(total[i][j], (__m512bh)_mm512_set1_epi32((int)a[i]), pair[j]);
    }
    UNROLL for (int i = 0; i < height; i++)
        UNROLL for (int j = 0; j < vectors; j++) _mm512_storeu_ps(sum + i * COLUMNS + j * LANES, total[i][j]);
}

static __attribute__((noinline, target("avx512bf16"))) void multiply_pairs(ssize_t k, const void *left, ssize_t line,
                                                                           const void *right, int rows, int columns,
                                                                           bool more, void *sums, const void *next) {
    (void)line, (void)next;
    switch ((rows + 1) / 2 * 2) {
#define HEIGHT(height)                                                                                                 \
    case height:                                                                                                       \
        if (columns > LANES) add_pairs(height, 2, k, left, right, more, sums);                                         \
        else add_pairs(height, 1, k, left, right, more, sums);                                                         \
        return;
        HEIGHT(2)
        HEIGHT(4)
        HEIGHT(6)
        HEIGHT(8)
        HEIGHT(10)
        HEIGHT(12)
        HEIGHT(14)
#undef HEIGHT
    }
}

/* Pairs of rows, for rows of contiguous pairs. */
static inline __attribute__((always_inline)) ssize_t pack_by_blocks(const int width, ssize_t pairs, int rows,
                                                                    const uint16_t *source, ssize_t row,
                                                                    uint32_t *packed) {
    ssize_t l = 0;
    for (; l + LANES <= pairs; l += LANES)
        for (int first = (rows - 1) / LANES * LANES; first >= 0; first -= LANES) { /* rewrites what spilled over */
            vector_u32 block[LANES];
            UNROLL for (int i = 0; i < LANES; i++) {
                int from = first + i < rows ? first + i : rows - 1;
                memcpy(&block[i], source + from * row + 2 * l, sizeof block[i]);
            }
            transpose_u32(block);
            UNROLL for (int i = 0; i < LANES; i++)
                memcpy(packed + (l + i) * width + first, &block[i], sizeof block[i]);
        }
    return l;
}

/* packed[l][i] = the elements (i, 2 l) and (i, 2 l + 1) of the source, zero beyond k; up to LANES pairs after the panel
 * are overwritten. */
static inline __attribute__((always_inline)) void pack_pairs(const int width, ssize_t k, int rows,
                                                             const uint16_t *source, ssize_t row, ssize_t column,
                                                             uint32_t *restrict packed) {
    ssize_t whole = k / 2, l = column == 1 ? pack_by_blocks(width, whole, rows, source, row, packed) : 0;
    for (; l < whole; l++) {
        const uint16_t *first = source + 2 * l * column, *second = first + column;
        if (row == 1)
            for (int i = 0; i < rows; i++) packed[l * width + i] = first[i] | (uint32_t)second[i] << 16;
        else
            for (int i = 0; i < rows; i++) packed[l * width + i] = first[i * row] | (uint32_t)second[i * row] << 16;
    }
    if (k % 2)
        for (int i = 0; i < rows; i++) packed[l * width + i] = source[i * row + 2 * l * column];
}

static void pack_left(ssize_t k, int lines, const void *source, ssize_t line, ssize_t along, void *packed) {
    pack_pairs(TILE_ROWS, k, lines, source, line, along, packed);
}

static void pack_right(ssize_t k, int lines, const void *source, ssize_t line, ssize_t along, void *packed) {
    pack_pairs(COLUMNS, k, lines, source, line, along, packed);
}

static bool put(const struct product *p, ssize_t row, ssize_t column, int rows, int columns, const void *sums) {
    return put_bf16(p, row, column, rows, columns, sums, COLUMNS), true;
}

const struct engine bf16_pairs = {
    .rows = TILE_ROWS, .least_rows = 2, .columns = COLUMNS, .unit = 2, .depth = 1024, .stretch = 1024, .size = 2,
    .left_bytes = TILE_ROWS * sizeof(uint32_t), .right_bytes = COLUMNS * sizeof(uint32_t), .width = COLUMNS,
    .pack_left = pack_left, .pack_right = pack_right, .multiply = multiply_pairs, .put = put,
};

bool multiply_bf16_by_pairs(const struct product *p) {
    return multiply_vectors_bf16_by_pairs(p) || multiply_packed(p, &bf16_pairs);
}

#else
bool multiply_bf16_by_pairs(const struct product *p) { return multiply_bf16(p); }
#endif
