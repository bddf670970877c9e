/* Products of bfloat16 with the processor's dot products of pairs, AVX512-BF16: two multiplications where float has one.
 * Numbers below the normal ones, in factors and in sums, are zeros to these instructions. */
#include "gemm/gemm_packed.h"

#include <stdint.h>
#include <string.h>

#include "gemm/gemm_transpose.h"

#if defined(__AVX512F__)
#include <immintrin.h>

#define ITEM uint16_t
#define OF_ITEM(name) name##_16
#define WITH_DOT __attribute__((target("avx512bf16")))
#define LOAD_WIDE(mask, from) _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from))
#define DOT(sums, x, y) (__m512i) _mm512_dpbf16_ps((__m512)(sums), (__m512bh)(x), (__m512bh)(y))
#include "gemm/gemm_words.inc"

static bool put(const struct product *p, ssize_t row, ssize_t column, int rows, int columns, const void *sums) {
    if (has_whole_rows(p, columns)) put_rows_bf16(p, row, column, rows, sums);
    else put_bf16(p, row, column, rows, columns, sums, MOST_COLUMNS);
    return true;
}

const struct engine bf16_pairs = {
    .rows = TILE_ROWS, .least_rows = 2, .columns = MOST_COLUMNS, .unit = 2, .depth = 1024, .stretch = 1024, .size = 2,
    .left_bytes = TILE_ROWS * sizeof(uint32_t), .right_bytes = MOST_COLUMNS * sizeof(uint32_t), .width = MOST_COLUMNS,
    .pack_left = pack_left_16, .pack_right = pack_right_16, .multiply = multiply_16, .put = put, .asks = true,
};

bool multiply_bf16_by_pairs(const struct product *p) {
    struct few most = {.beside_columns = MOST_COLUMNS, .of_any_depth = 2, .beside_rows = 8};
    return multiply_few_bf16_by_pairs(p, most) || multiply_packed(p, &bf16_pairs);
}

#else
bool multiply_bf16_by_pairs(const struct product *p) { return multiply_bf16(p); }
#endif
