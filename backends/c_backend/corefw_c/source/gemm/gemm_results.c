/* What becomes of the sums of packed products: rounded to half types with what is added, as they are, or as floats. */
#include "gemm/gemm_packed.h"

#include "core/halves.h"

#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

/* -- half types -- */
static inline __attribute__((always_inline)) void put_halves(const bool brain, const struct product *p, ssize_t row,
                                                             ssize_t column, int rows, int columns, const float *sums,
                                                             int sums_row) {
    bool plain = !p->added && p->alpha == 1;
    float alpha = (float)p->alpha, beta = (float)p->beta, scaled[MOST_COLUMNS];
    for (int i = 0; i < rows; i++, sums += sums_row) {
        uint16_t *c = (uint16_t *)p->c + (row + i) * p->c_row + column;
        const uint16_t *added = (const uint16_t *)p->added + (row + i) * p->added_row + column * p->added_column;
        for (int j = 0; j < columns && !plain; j++) scaled[j] = alpha * sums[j];
        for (int j = 0; j < columns && p->added; j++) {
            uint16_t half = added[j * p->added_column];
            scaled[j] += beta * (brain ? float_of_bfloat16(half) : float_of_float16(half));
        }
        (brain ? narrow_bfloat16 : narrow_float16)(columns, plain ? sums : scaled, c);
    }
}

void put_bf16(const struct product *p, ssize_t row, ssize_t column, int rows, int columns, const float *sums,
              int sums_row) {
    put_halves(true, p, row, column, rows, columns, sums, sums_row);
}

void put_f16(const struct product *p, ssize_t row, ssize_t column, int rows, int columns, const float *sums,
             int sums_row) {
    put_halves(false, p, row, column, rows, columns, sums, sums_row);
}

#if defined(__AVX512F__)
/* alpha sums + beta added, for sixteen of a row; added: NULL for zeros. */
static inline __m512 finished(const struct product *p, const float *sums, const uint16_t *added, bool brain) {
    __m512 x = _mm512_loadu_ps(sums) * (float)p->alpha;
    if (!added) return x;
    __m256i halves = _mm256_loadu_si256((const void *)added);
    __m512 floats = brain ? _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16))
                          : _mm512_cvtph_ps(halves);
    return x + (float)p->beta * floats;
}

__attribute__((target("avx512bf16"))) void put_rows_bf16(const struct product *p, ssize_t row, ssize_t column, int rows,
                                                         const float *sums) {
    uint16_t *c = (uint16_t *)p->c + row * p->c_row + column;
    const uint16_t *added = p->added ? (const uint16_t *)p->added + row * p->added_row + column : NULL;
    for (int i = 0; i < rows; i++, c += p->c_row, sums += MOST_COLUMNS) {
        __m512 x = finished(p, sums, added, true), y = finished(p, sums + 16, added ? added + 16 : NULL, true);
        _mm512_storeu_si512(c, (__m512i)_mm512_cvtne2ps_pbh(y, x));
        if (added) added += p->added_row;
    }
}

bool put_rows_f16(const struct product *p, ssize_t row, ssize_t column, int rows, const float *sums) {
    uint16_t *c = (uint16_t *)p->c + row * p->c_row + column;
    const uint16_t *added = p->added ? (const uint16_t *)p->added + row * p->added_row + column : NULL;
    __mmask16 nan = 0;
    for (int i = 0; i < rows; i++, c += p->c_row, sums += MOST_COLUMNS) {
        __m512 x = finished(p, sums, added, false), y = finished(p, sums + 16, added ? added + 16 : NULL, false);
        nan |= _mm512_cmp_ps_mask(x, y, _CMP_UNORD_Q);
        _mm256_storeu_si256((void *)c, _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
        _mm256_storeu_si256((void *)(c + 16), _mm512_cvtps_ph(y, _MM_FROUND_TO_NEAREST_INT));
        if (added) added += p->added_row;
    }
    return !nan;
}
#endif

/* -- integers -- */
void put_i32(const struct product *p, ssize_t row, ssize_t column, int rows, int columns, const int32_t *sums,
             int sums_row) {
    for (int i = 0; i < rows; i++)
        memcpy((int32_t *)p->c + (row + i) * p->c_row + column, sums + i * sums_row, 4 * (size_t)columns);
}

void put_dequantized(const struct product *p, ssize_t row, ssize_t column, int rows, int columns, const int32_t *sums,
                     int sums_row) {
    const struct dequantization *d = p->added;
    float steps[MOST_COLUMNS], bias[MOST_COLUMNS];
    uint32_t zeros[MOST_COLUMNS]; /* which may overflow */
    for (int j = 0; j < columns; j++) {
        steps[j] = d->step * d->scale[(column + j) * d->scale_step];
        zeros[j] = (uint32_t)d->zero * (uint32_t)d->sums[column + j];
        bias[j] = d->bias ? d->bias[column + j] : 0;
    }
    for (int i = 0; i < rows; i++) {
        ssize_t at = (row + i) * p->c_row + column;
        float floats[MOST_COLUMNS], *c = d->narrow ? floats : (float *)p->c + at;
        for (int j = 0; j < columns; j++)
            c[j] = (float)(int32_t)((uint32_t)sums[i * sums_row + j] - zeros[j]) * steps[j] + bias[j];
        if (d->narrow) d->narrow(columns, floats, (uint16_t *)p->c + at);
    }
}
