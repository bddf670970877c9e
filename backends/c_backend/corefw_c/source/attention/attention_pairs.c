/* Products of attention with the processor's dot products of pairs, AVX512-BF16: of bfloat16 and bfloat16. Rows of keys
 * and values are read as words of two neighbours, where they are, as single elements are in core/panel.inc. */
#include "attention/attention_halves.h"
#include "gemm/gemm_transpose.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#include <string.h>

enum { ROWS = 8, COLUMNS = 32 };

/* Words of y's pairs, [pair][column], zeros beyond y. */
static void pack(ssize_t count, ssize_t width, const uint16_t *y, ssize_t row, ssize_t column, void *packed) {
    enum { LANES = LANES_f32 };
    ssize_t whole = column == 1 ? width / (2 * LANES) * LANES : 0;
    uint16_t *halves = packed;
    memset(packed, 0, (size_t)((width + 1) / 2 * COLUMNS) * sizeof(uint32_t));
    for (ssize_t first = 0; first < count; first += LANES)
        for (ssize_t l = 0; l < whole; l += LANES) {
            vector_u32 block[LANES];
            UNROLL for (int i = 0; i < LANES; i++)
                if (first + i < count) memcpy(&block[i], y + (first + i) * row + 2 * l, sizeof block[i]);
                else block[i] = (vector_u32){0};
            transpose_u32(block);
            UNROLL for (int i = 0; i < LANES; i++)
                memcpy((uint32_t *)packed + (l + i) * COLUMNS + first, &block[i], sizeof block[i]);
        }
    for (ssize_t j = 0; j < count; j++)
        for (ssize_t l = 2 * whole; l < width; l++)
            halves[(l / 2 * COLUMNS + j) * 2 + l % 2] = y[j * row + l * column];
}

/* `rows` rows and `vectors` vectors of columns, both constants. */
static inline __attribute__((always_inline, target("avx512bf16"))) void meet_rows(
    const int rows, const int vectors, ssize_t pairs, const uint16_t *x, ssize_t row, const uint32_t *y, __m512 factor,
    bool more, float *c) {
    __m512 sum[ROWS][2];
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int j = 0; j < vectors; j++) sum[i][j] = _mm512_setzero_ps();
    for (ssize_t l = 0; l < pairs; l++, y += COLUMNS) {
        __m512bh right[2];
        UNROLL for (int j = 0; j < vectors; j++) right[j] = (__m512bh)_mm512_loadu_si512(y + j * LANES_f32);
        UNROLL for (int i = 0; i < rows; i++) {
            int word;
            memcpy(&word, x + i * row + 2 * l, sizeof word);
            UNROLL for (int j = 0; j < vectors; j++)
                sum[i][j] = _mm512_dpbf16_ps(sum[i][j], (__m512bh)_mm512_set1_epi32(word), right[j]);
        }
    }
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int j = 0; j < vectors; j++) {
            float *to = c + i * COLUMNS + j * LANES_f32;
            _mm512_storeu_ps(to, more ? _mm512_fmadd_ps(sum[i][j], factor, _mm512_loadu_ps(to))
                                      : _mm512_mul_ps(sum[i][j], factor));
        }
}

static __attribute__((target("avx512bf16"))) void meet(ssize_t n, ssize_t used, ssize_t width, const uint16_t *x,
                                                       ssize_t row, const void *packed, float factor, bool more,
                                                       float *c) {
    __m512 factors = _mm512_set1_ps(factor);
    ssize_t pairs = (width + 1) / 2, i = 0;
    for (; i + ROWS <= n; i += ROWS, x += ROWS * row, c += ROWS * COLUMNS)
        if (used > LANES_f32) meet_rows(ROWS, 2, pairs, x, row, packed, factors, more, c);
        else meet_rows(ROWS, 1, pairs, x, row, packed, factors, more, c);
    for (; i < n; i++, x += row, c += COLUMNS) meet_rows(1, 2, pairs, x, row, packed, factors, more, c);
}

static const struct halves_engine engine = {.rows = 1, .unit = 2, .pack = pack, .meet = meet};
const struct halves_engine *const attention_pairs = &engine;

#else
const struct halves_engine *const attention_pairs = NULL;
#endif
