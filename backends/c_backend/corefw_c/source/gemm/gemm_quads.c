/* Products of int8 with the processor's dot products of four bytes, AVX512-VNNI.
 *
 * The left bytes of the instruction are unsigned: 128 is added to them, and 128 times the sums of the right factor's columns
 * are taken away at the end. Sums may overflow meanwhile. */
#include "core/memory.h"
#include "core/threads.h"
#include "gemm/gemm_packed.h"

#include <stdint.h>
#include <string.h>

#include "gemm/gemm_transpose.h"

#if defined(__AVX512F__)
#include <immintrin.h>

enum {
    SHIFT = 128,         /* what makes a signed byte unsigned */
    SIDE_BY_SIDE = 128,  /* columns of contiguous rows that are added up at once */
    FAR_BYTES = 1 << 20, /* of a matrix that is asked for before it meets a few rows */
};

#define ITEM uint8_t
#define OF_ITEM(name) name##_8
#define WITH_DOT __attribute__((target("avx512vnni")))
#define LOAD_WIDE(mask, from) _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(mask, from))
#define DOT _mm512_dpbusd_epi32
#include "gemm/gemm_words.inc"
#undef ITEM
#undef WITH_DOT

static void pack_shifted(ssize_t k, int lines, const void *source, ssize_t line, ssize_t along, void *packed) {
    uint32_t *words = packed;
    pack_left_8(k, lines, source, line, along, packed);
    for (ssize_t i = 0; i < (k + 3) / 4 * TILE_ROWS; i++) words[i] ^= 0x01010101u * SHIFT;
}

/* -- integers: what is added are the sums of columns -- */
static bool put(const struct product *p, ssize_t row, ssize_t column, int rows, int columns, const void *sums) {
    const uint32_t *sum = sums, *of_columns = (const uint32_t *)p->added + column; /* which may overflow */
    for (int i = 0; i < rows; i++, sum += MOST_COLUMNS) {
        uint32_t *c = (uint32_t *)p->c + (row + i) * p->c_row + column;
        if (columns == MOST_COLUMNS)
            for (int j = 0; j < MOST_COLUMNS; j++) c[j] = sum[j] - SHIFT * of_columns[j];
        else
            for (int j = 0; j < columns; j++) c[j] = sum[j] - SHIFT * of_columns[j];
    }
    return true;
}

struct additions {
    const struct product *p;
    int32_t *sums;
};

/* The sums of 16 columns for each of some vectors, a constant, of k contiguous rows; of the last ones those that are there. */
static inline __attribute__((always_inline)) void add_rows(const int vectors, ssize_t k, const int8_t *b, ssize_t row,
                                                           __mmask16 there, int32_t *sums) {
    __m512i total[SIDE_BY_SIDE / 16];
    UNROLL for (int i = 0; i < vectors; i++) total[i] = _mm512_setzero_si512();
    for (ssize_t l = 0; l < k; l++, b += row)
        UNROLL for (int i = 0; i < vectors; i++)
            total[i] = _mm512_add_epi32(total[i], _mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(there, b + i * 16)));
    UNROLL for (int i = 0; i < vectors; i++) _mm512_mask_storeu_epi32(sums + i * 16, there, total[i]);
}

static int32_t sum_of(ssize_t k, const int8_t *b, ssize_t step) {
    uint32_t sum = 0; /* may overflow */
    if (step == 1)
        for (ssize_t l = 0; l < k; l++) sum += (uint32_t)b[l];
    else
        for (ssize_t l = 0; l < k; l++) sum += (uint32_t)b[l * step];
    return (int32_t)sum;
}

/* The sums of groups begin to end of SIDE_BY_SIDE columns of the right factor. */
static void add_columns(void *context, ssize_t begin, ssize_t end) {
    const struct additions *job = context;
    const struct product *p = job->p;
    for (ssize_t column = begin * SIDE_BY_SIDE; column < end * SIDE_BY_SIDE && column < p->n; column += SIDE_BY_SIDE) {
        ssize_t columns = p->n - column < SIDE_BY_SIDE ? p->n - column : SIDE_BY_SIDE;
        const int8_t *b = (const int8_t *)p->b + column * p->b_column;
        int32_t *sums = job->sums + column;
        if (p->b_column == 1 && columns == SIDE_BY_SIDE) add_rows(SIDE_BY_SIDE / 16, p->k, b, p->b_row, 0xFFFF, sums);
        else if (p->b_column == 1)
            for (ssize_t j = 0; j < columns; j += 16)
                add_rows(1, p->k, b + j, p->b_row, columns - j < 16 ? (__mmask16)((1u << (columns - j)) - 1) : 0xFFFF,
                         sums + j);
        else
            for (ssize_t j = 0; j < columns; j++) sums[j] = sum_of(p->k, b + j * p->b_column, p->b_row);
    }
}

/* -- floats -- */
static bool put_floats(const struct product *p, ssize_t row, ssize_t column, int rows, int columns, const void *sums) {
    return put_dequantized(p, row, column, rows, columns, sums, MOST_COLUMNS), true;
}

#define LOAD_BYTES_PART(from, n) _mm512_maskz_loadu_epi8((1ull << (n)) - 1, from)
#define ADD_QUADS(sum, x, y) ((vector_u32)_mm512_dpbusd_epi32((__m512i)(sum), x, y))

#define ITEM int8_t
#define OF_DOTS(name) name##_quads
#define SUM uint32_t
#define SUMS vector_u32
#define LINE __m512i
#define STEP 64
#define WITH_DOT __attribute__((target("avx512vnni")))
#define LOAD_LEFT _mm512_loadu_si512
#define LOAD_RIGHT _mm512_loadu_si512
#define LOAD_PART LOAD_BYTES_PART
#define ADD ADD_QUADS
#define FOLD fold_u32
#include "gemm/gemm_dots.inc"
#undef ITEM

/* A few rows, whose bytes are shifted, by groups begin to end of MOST_COLUMNS columns, both contiguous along k. */
static void multiply_groups(void *context, ssize_t begin, ssize_t end) {
    const struct product *p = context;
    bool far = p->n * p->k > FAR_BYTES;
    for (ssize_t column = begin * MOST_COLUMNS; column < end * MOST_COLUMNS && column < p->n; column += MOST_COLUMNS) {
        int columns = p->n - column < MOST_COLUMNS ? (int)(p->n - column) : MOST_COLUMNS;
        uint32_t sums[FEW_ROWS][MOST_COLUMNS];
        all_dots_quads(rounded_rows(p->m), p->k, p->a, p->a_row, (const int8_t *)p->b + column * p->b_column, p->b_column,
                       columns, far, sums);
        put_dequantized(p, 0, column, (int)p->m, columns, (const int32_t *)sums, MOST_COLUMNS);
    }
}

/* Whether a few rows were multiplied by columns as they lie. */
static bool multiply_few_quads(const struct product *p) {
    if (p->m > MOST_COLUMNS || p->a_column != 1 || p->b_row != 1) return false;
    struct product few = *p;
    few.a_row = padded(p->k);
    ssize_t rows = rounded_rows(p->m), cost = p->k * MOST_COLUMNS / 64 * (12 + 4 * p->m);
    int8_t *shifted = allocate_items(rows * few.a_row, 1);
    if (!shifted) return false;
    memset(shifted, 0, (size_t)(rows * few.a_row));
    for (ssize_t i = 0; i < p->m; i++)
        for (ssize_t l = 0; l < p->k; l++)
            shifted[i * few.a_row + l] = (int8_t)(((const uint8_t *)p->a)[i * p->a_row + l] ^ SHIFT);
    few.a = shifted;
    parallel_for((p->n + MOST_COLUMNS - 1) / MOST_COLUMNS, grain_for(cost), multiply_groups, &few);
    release(shifted);
    return true;
}

#define ENGINE(put_sums)                                                                                               \
    {                                                                                                                  \
        .rows = TILE_ROWS, .least_rows = 2, .columns = MOST_COLUMNS, .unit = 4, .depth = 2048, .stretch = 1024,        \
        .size = 1, .left_bytes = TILE_ROWS * sizeof(uint32_t), .right_bytes = MOST_COLUMNS * sizeof(uint32_t),         \
        .pack_left = pack_shifted, .pack_right = pack_right_8, .multiply = multiply_8, .put = put_sums,                \
    }

bool multiply_i8_by_quads(const struct product *p) {
    static const struct engine engine = ENGINE(put);
    struct additions job = {p, allocate_items(p->n + 1, sizeof(int32_t))};
    if (!job.sums) return false;
    parallel_for((p->n + SIDE_BY_SIDE - 1) / SIDE_BY_SIDE, grain_for(p->k * SIDE_BY_SIDE / 16), add_columns, &job);
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
    return multiply_few_quads(&shifted) || multiply_packed(&shifted, &engine);
}

#else
bool multiply_i8_by_quads(const struct product *p) { return multiply_i8(p); }

bool multiply_i8_to_floats_by_quads(const struct product *p) { return multiply_i8_to_floats(p); }
#endif
