/* Products of int8 with the processor's dot products of four bytes, AVX512-VNNI.
 *
 * Both factors are packed as words of four neighbours along k, which take the place of single elements in the tiles of
 * gemm.inc. The left bytes of the instruction are unsigned: 128 is added to them, and 128 times the sums of the right
 * factor's columns taken away at the end. Sums may overflow meanwhile. */
#include "core/memory.h"
#include "core/threads.h"
#include "gemm/gemm_packed.h"

#include <stdint.h>
#include <string.h>

#include "gemm/gemm_transpose.h"

#if defined(__AVX512F__)
#include <immintrin.h>

#define QUADS __attribute__((target("avx512vnni")))

enum {
    LANES = 16,
    COLUMNS = TILE_VECTORS * LANES,
    SHIFT = 128, /* what makes a signed byte unsigned */
    FEW = 4,     /* rows at most for which the right factor is not worth packing */
};

/* sums[TILE_ROWS][COLUMNS] = (more ? sums : 0) + a b, for a: columns of TILE_ROWS words, b: rows of COLUMNS words. */
static QUADS __attribute__((noinline)) void multiply_quads(ssize_t k, const void *left, ssize_t line, const void *right,
                                                           int rows, int columns, bool more, void *sums,
                                                           const void *next) {
    (void)line, (void)next, (void)rows, (void)columns;
    const int *a = left, *b = right;
    int *sum = sums;
    __m512i total[TILE_ROWS][TILE_VECTORS];
    UNROLL for (int i = 0; i < TILE_ROWS; i++)
        UNROLL for (int j = 0; j < TILE_VECTORS; j++)
            total[i][j] = more ? _mm512_loadu_si512(sum + i * COLUMNS + j * LANES) : _mm512_setzero_si512();
    for (ssize_t l = 0; l < k; l += 4, a += TILE_ROWS, b += COLUMNS) {
        __m512i quad[TILE_VECTORS];
        UNROLL for (int j = 0; j < TILE_VECTORS; j++) quad[j] = _mm512_loadu_si512(b + j * LANES);
        UNROLL for (int i = 0; i < TILE_ROWS; i++)
            UNROLL for (int j = 0; j < TILE_VECTORS; j++)
                total[i][j] = _mm512_dpbusd_epi32(total[i][j], _mm512_set1_epi32(a[i]), quad[j]);
    }
    UNROLL for (int i = 0; i < TILE_ROWS; i++)
        UNROLL for (int j = 0; j < TILE_VECTORS; j++) _mm512_storeu_si512(sum + i * COLUMNS + j * LANES, total[i][j]);
}

#define ITEM uint8_t
#define OF_ITEM(name) name##_8
#include "gemm/gemm_words.inc"

static void pack_left(ssize_t k, int lines, const void *source, ssize_t line, ssize_t along, void *packed) {
    uint32_t *words = packed;
    pack_words_8(TILE_ROWS, k, lines, source, line, along, words);
    for (ssize_t i = 0; i < (k + 3) / 4 * TILE_ROWS; i++) words[i] ^= 0x01010101u * SHIFT;
}

static void pack_right(ssize_t k, int lines, const void *source, ssize_t line, ssize_t along, void *packed) {
    pack_words_8(COLUMNS, k, lines, source, line, along, packed);
}

/* -- integers: what is added are the sums of columns -- */
static bool put(const struct product *p, ssize_t row, ssize_t column, int rows, int columns, const void *sums) {
    const uint32_t *sum = sums, *of_columns = (const uint32_t *)p->added + column; /* which may overflow */
    for (int i = 0; i < rows; i++, sum += COLUMNS) {
        uint32_t *c = (uint32_t *)p->c + (row + i) * p->c_row + column;
        for (int j = 0; j < columns; j++) c[j] = sum[j] - SHIFT * of_columns[j];
    }
    return true;
}

struct additions {
    const struct product *p;
    int32_t *sums;
};

/* The sums of the right factor's columns begin to end. */
static void add_columns(void *context, ssize_t begin, ssize_t end) {
    const struct additions *job = context;
    const struct product *p = job->p;
    const int8_t *b = p->b;
    int32_t *restrict sums = job->sums;
    if (p->b_row == 1) {
        for (ssize_t j = begin; j < end; j++) {
            int32_t sum = 0;
            for (ssize_t l = 0; l < p->k; l++) sum += b[j * p->b_column + l];
            sums[j] = sum;
        }
        return;
    }
    for (ssize_t j = begin; j < end; j++) sums[j] = 0;
    for (ssize_t l = 0; l < p->k; l++, b += p->b_row)
        if (p->b_column == 1)
            for (ssize_t j = begin; j < end; j++) sums[j] += b[j];
        else
            for (ssize_t j = begin; j < end; j++) sums[j] += b[j * p->b_column];
}

/* -- floats -- */
static bool put_floats(const struct product *p, ssize_t row, ssize_t column, int rows, int columns, const void *sums) {
    return put_dequantized(p, row, column, rows, columns, sums, COLUMNS), true;
}

/* Few rows: their dot products with the columns begin to end of the right factor, both contiguous along k. */
static QUADS void multiply_by_dots(void *context, ssize_t begin, ssize_t end) {
    const struct product *p = context;
    const __m512i shift = _mm512_set1_epi8((char)SHIFT);
    for (ssize_t column = begin; column < end; column += COLUMNS) {
        int columns = end - column < COLUMNS ? (int)(end - column) : COLUMNS;
        uint32_t sums[FEW][COLUMNS];
        for (int j = 0; j < columns; j += 4) {
            const int8_t *b[4];
            UNROLL for (int i = 0; i < 4; i++)
                b[i] = (const int8_t *)p->b + (column + (j + i < columns ? j + i : columns - 1)) * p->b_column;
            for (ssize_t row = 0; row < p->m; row++) {
                const int8_t *a = (const int8_t *)p->a + row * p->a_row;
                vector_u32 total[4] = {{0}, {0}, {0}, {0}};
                for (ssize_t l = 0; l < p->k; l += 64) {
                    __mmask64 there = p->k - l < 64 ? (1ull << (p->k - l)) - 1 : ~0ull;
                    __m512i x = _mm512_xor_si512(_mm512_maskz_loadu_epi8(there, a + l), shift);
                    UNROLL for (int i = 0; i < 4; i++)
                        total[i] = (vector_u32)_mm512_dpbusd_epi32((__m512i)total[i], x,
                                                                   _mm512_maskz_loadu_epi8(there, b[i] + l));
                }
                totals_u32(total, sums[row] + j);
            }
        }
        put_dequantized(p, 0, column, (int)p->m, columns, (const int32_t *)sums, COLUMNS);
    }
}

#define ENGINE(put_sums)                                                                                               \
    {                                                                                                                  \
        .rows = TILE_ROWS, .columns = COLUMNS, .unit = 4, .depth = 2048, .stretch = 1024, .size = 1,                   \
        .left_bytes = TILE_ROWS * sizeof(uint32_t), .right_bytes = COLUMNS * sizeof(uint32_t),                         \
        .pack_left = pack_left, .pack_right = pack_right, .multiply = multiply_quads, .put = put_sums,                 \
    }

bool multiply_i8_by_quads(const struct product *p) {
    static const struct engine engine = ENGINE(put);
    struct additions job = {p, allocate_items(p->n + 1, sizeof(int32_t))};
    if (!job.sums) return false;
    parallel_for(p->n, grain_for(p->k / LANES), add_columns, &job);
    struct product shifted = *p;
    shifted.added = job.sums;
    bool done = multiply_packed(&shifted, &engine);
    release(job.sums);
    return done;
}

bool multiply_i8_to_floats_by_quads(const struct product *p) {
    static const struct engine engine = ENGINE(put_floats);
    struct dequantization d = *(const struct dequantization *)p->added;
    struct product shifted = *p;
    d.zero += SHIFT;
    shifted.added = &d;
    if (p->m > FEW || p->a_column != 1 || p->b_row != 1) return multiply_packed(&shifted, &engine);
    parallel_for(p->n, grain_for(p->m * p->k / LANES), multiply_by_dots, &shifted);
    return true;
}

#else
bool multiply_i8_by_quads(const struct product *p) { return multiply_i8(p); }

bool multiply_i8_to_floats_by_quads(const struct product *p) { return multiply_i8_to_floats(p); }
#endif
