/* Products by the processor's tiles, AMX: of bfloat16, of float16 as sums of two bfloat16, and of int8.
 *
 * Two tiles of the left factor meet two of the right one. A panel is a row of steps; a step has two tiles, which hold
 * 16 lines of 16 words each: a word is two halves or four bytes, neighbours along k. The first eight bits
 * of a float16 are a bfloat16, and the rest is one too, so that a product of two is the sum of four that are exact; steps
 * of float16 have two tiles of the former, then two of the rests. */
#include "core/halves.h"
#include "core/tiles.h"
#include "gemm/gemm_packed.h"

#include "kernels.h"

#include "gemm/gemm_transpose.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

int tiles_are_emulated(void) { return TILES_ARE_EMULATED; }

enum { WORDS = 16, LINES = 2 * TILE_SIDE, STEP_BYTES = 2 * TILE_BYTES };

typedef uint32_t tile_words[TILE_SIDE][WORDS];

/* -- packing -- */
static void transpose_words(tile_words words) {
#if VECTOR_BYTES == 64
    vector_u32 rows[TILE_SIDE];
    UNROLL for (int i = 0; i < TILE_SIDE; i++) memcpy(&rows[i], words[i], sizeof rows[i]);
    transpose_u32(rows);
    UNROLL for (int i = 0; i < TILE_SIDE; i++) memcpy(words[i], &rows[i], sizeof rows[i]);
#else
    for (int i = 0; i < TILE_SIDE; i++)
        for (int j = 0; j < i; j++) {
            uint32_t word = words[i][j];
            words[i][j] = words[j][i], words[j][i] = word;
        }
#endif
}

#define ITEM uint16_t
#define OF_ITEM(name) name##_16
#include "gemm/gemm_tiles.inc"
#undef ITEM
#undef OF_ITEM
#define ITEM uint8_t
#define OF_ITEM(name) name##_8
#include "gemm/gemm_tiles.inc"
#undef ITEM
#undef OF_ITEM

/* Words of float16 become their first eight bits, as bfloat16, and the rests two tiles after them. */
static void split_words(char *packed) {
    enum { HALVES = TILE_BYTES / 2 };
    uint16_t *restrict first = (uint16_t *)packed, *restrict rest = first + 2 * HALVES;
    float x[HALVES];
    widen_float16(HALVES, first, x);
    for (int i = 0; i < HALVES; i++) {
        uint32_t bits = bits_f32(x[i]);
        first[i] = (uint16_t)(bits >> 16);
        rest[i] = (uint16_t)(bits_f32(x[i] - from_bits_f32(bits & 0xFFFF0000)) >> 16);
    }
}

static inline __attribute__((always_inline)) void pack_panel_f16(const bool across, ssize_t k, int lines,
                                                                 const void *source, ssize_t line, ssize_t along,
                                                                 char *packed) {
    pack_panel_16(across, k, lines, source, line, along, packed, 2 * STEP_BYTES);
    for (ssize_t l = 0; l < k; l += STEP_16, packed += 2 * STEP_BYTES)
        for (int first = 0; first < lines; first += TILE_SIDE) split_words(packed + first / TILE_SIDE * TILE_BYTES);
}

#define DEFINE_PACKING(suffix, panel, ...)                                                                             \
    static void pack_left_##suffix(ssize_t k, int lines, const void *source, ssize_t line, ssize_t along,              \
                                   void *packed) {                                                                     \
        panel(false, k, lines, source, line, along, packed __VA_ARGS__);                                               \
    }                                                                                                                  \
    static void pack_right_##suffix(ssize_t k, int lines, const void *source, ssize_t line, ssize_t along,             \
                                    void *packed) {                                                                    \
        panel(true, k, lines, source, line, along, packed __VA_ARGS__);                                                \
    }
DEFINE_PACKING(bf16, pack_panel_16, , STEP_BYTES)
DEFINE_PACKING(f16, pack_panel_f16)
DEFINE_PACKING(i8, pack_panel_8, , STEP_BYTES)

/* -- products: tiles 0 to 3 hold the sums, 4 and 5 those of the left factor, 6 and 7 those of the right one -- */
enum { SUMS_ROW = 4 * LINES }; /* bytes */

#define LOAD_LEFT(from) TILE_LOAD(4, from, 64); if (tall) { TILE_LOAD(5, from + TILE_BYTES, 64); }
#define LOAD_RIGHT(from) TILE_LOAD(6, from, 64); if (wide) { TILE_LOAD(7, from + TILE_BYTES, 64); }
#define MULTIPLY(PRODUCT)                                                                                              \
    PRODUCT(0, 4, 6);                                                                                                  \
    if (wide) { PRODUCT(1, 4, 7); }                                                                                    \
    if (tall) { PRODUCT(2, 5, 6); }                                                                                    \
    if (tall && wide) { PRODUCT(3, 5, 7); }

/* Adds up steps of STEP elements; PRODUCTS is what to do for a step, at a and b, of `bytes` each. */
#define DEFINE_MULTIPLY(suffix, STEP, bytes, PRODUCTS)                                                                 \
    static TILE_FUNCTION void multiply_tiles_##suffix(ssize_t k, const void *left, const void *right, int rows,        \
                                                      int columns, bool more, void *sums) {                            \
        TILE_REGISTERS;                                                                                                \
        const char *a = left, *b = right;                                                                              \
        char *c = sums;                                                                                                \
        bool tall = rows > TILE_SIDE, wide = columns > TILE_SIDE;                                                      \
        if (more) {                                                                                                    \
            TILE_LOAD(0, c, SUMS_ROW);                                                                                 \
            TILE_LOAD(1, c + SUMS_ROW / 2, SUMS_ROW);                                                                  \
            TILE_LOAD(2, c + TILE_SIDE * SUMS_ROW, SUMS_ROW);                                                          \
            TILE_LOAD(3, c + TILE_SIDE * SUMS_ROW + SUMS_ROW / 2, SUMS_ROW);                                           \
        } else {                                                                                                       \
            TILE_ZERO(0);                                                                                              \
            TILE_ZERO(1);                                                                                              \
            TILE_ZERO(2);                                                                                              \
            TILE_ZERO(3);                                                                                              \
        }                                                                                                              \
        for (ssize_t l = 0; l < k; l += STEP, a += bytes, b += bytes) { PRODUCTS }                                     \
        TILE_STORE(0, c, SUMS_ROW);                                                                                    \
        TILE_STORE(1, c + SUMS_ROW / 2, SUMS_ROW);                                                                     \
        TILE_STORE(2, c + TILE_SIDE * SUMS_ROW, SUMS_ROW);                                                             \
        TILE_STORE(3, c + TILE_SIDE * SUMS_ROW + SUMS_ROW / 2, SUMS_ROW);                                              \
    }
DEFINE_MULTIPLY(bf16, STEP_16, STEP_BYTES, LOAD_LEFT(a) LOAD_RIGHT(b) MULTIPLY(TILE_PRODUCT_BF16))
DEFINE_MULTIPLY(i8, STEP_8, STEP_BYTES, LOAD_LEFT(a) LOAD_RIGHT(b) MULTIPLY(TILE_PRODUCT_I8))
DEFINE_MULTIPLY(f16, STEP_16, 2 * STEP_BYTES,
                LOAD_LEFT(a) LOAD_RIGHT(b) MULTIPLY(TILE_PRODUCT_BF16)
                LOAD_RIGHT((b + STEP_BYTES)) MULTIPLY(TILE_PRODUCT_BF16)
                LOAD_LEFT((a + STEP_BYTES)) MULTIPLY(TILE_PRODUCT_BF16)
                LOAD_RIGHT(b) MULTIPLY(TILE_PRODUCT_BF16))

/* -- results -- */
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

/* Whole rows, with a contiguous addend or none. */
static __attribute__((target("avx512bf16"))) void put_rows_bf16(const struct product *p, ssize_t row, ssize_t column,
                                                                int rows, const float *sums) {
    uint16_t *c = (uint16_t *)p->c + row * p->c_row + column;
    const uint16_t *added = p->added ? (const uint16_t *)p->added + row * p->added_row + column : NULL;
    for (int i = 0; i < rows; i++, c += p->c_row, sums += LINES) {
        __m512 x = finished(p, sums, added, true), y = finished(p, sums + 16, added ? added + 16 : NULL, true);
        _mm512_storeu_si512(c, (__m512i)_mm512_cvtne2ps_pbh(y, x));
        if (added) added += p->added_row;
    }
}

/* The same; false if a sum is NaN. */
static bool put_rows_f16(const struct product *p, ssize_t row, ssize_t column, int rows, const float *sums) {
    uint16_t *c = (uint16_t *)p->c + row * p->c_row + column;
    const uint16_t *added = p->added ? (const uint16_t *)p->added + row * p->added_row + column : NULL;
    __mmask16 nan = 0;
    for (int i = 0; i < rows; i++, c += p->c_row, sums += LINES) {
        __m512 x = finished(p, sums, added, false), y = finished(p, sums + 16, added ? added + 16 : NULL, false);
        nan |= _mm512_cmp_ps_mask(x, y, _CMP_UNORD_Q);
        _mm256_storeu_si256((void *)c, _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
        _mm256_storeu_si256((void *)(c + 16), _mm512_cvtps_ph(y, _MM_FROUND_TO_NEAREST_INT));
        if (added) added += p->added_row;
    }
    return !nan;
}
#endif

static inline __attribute__((unused)) bool has_whole_rows(const struct product *p, int columns) {
    return columns == LINES && (!p->added || p->added_column == 1);
}

static bool put_tile_bf16(const struct product *p, ssize_t row, ssize_t column, int rows, int columns,
                          const void *sums) {
#if defined(__AVX512F__)
    if (!TILES_ARE_EMULATED && has_whole_rows(p, columns)) return put_rows_bf16(p, row, column, rows, sums), true;
#endif
    return put_bf16(p, row, column, rows, columns, sums, LINES), true;
}

/* The rest of an infinite number is NaN, and so are its products. */
static bool put_tile_f16(const struct product *p, ssize_t row, ssize_t column, int rows, int columns,
                         const void *sums) {
#if defined(__AVX512F__)
    if (has_whole_rows(p, columns)) return put_rows_f16(p, row, column, rows, sums);
#endif
    const float *sum = sums;
    bool any_nan = false;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) any_nan |= sum[i * LINES + j] != sum[i * LINES + j];
    return put_f16(p, row, column, rows, columns, sums, LINES), !any_nan;
}

static bool put_tile_i8(const struct product *p, ssize_t row, ssize_t column, int rows, int columns, const void *sums) {
    return put_i32(p, row, column, rows, columns, sums, LINES), true;
}

/* -- the products -- */
const struct engine bf16_tiles = {
    .rows = LINES, .columns = LINES, .unit = STEP_16, .depth = 1024, .stretch = 256, .size = 2,
    .left_bytes = STEP_BYTES, .right_bytes = STEP_BYTES, .pack_left = pack_left_bf16, .pack_right = pack_right_bf16,
    .multiply = multiply_tiles_bf16, .put = put_tile_bf16, .begin = tiles_begin, .end = tiles_end,
};

bool multiply_bf16_by_tiles(const struct product *p) {
    return multiply_vectors_bf16(p) || multiply_packed(p, &bf16_tiles);
}

bool multiply_f16_by_tiles(const struct product *p) {
    static const struct engine engine = {
        .rows = LINES, .columns = LINES, .unit = STEP_16, .depth = 512, .stretch = 128, .size = 2,
        .left_bytes = 2 * STEP_BYTES, .right_bytes = 2 * STEP_BYTES, .pack_left = pack_left_f16,
        .pack_right = pack_right_f16, .multiply = multiply_tiles_f16, .put = put_tile_f16, .begin = tiles_begin,
        .end = tiles_end, .otherwise = multiply_f16,
    };
    return multiply_packed(p, &engine);
}

bool multiply_i8_by_tiles(const struct product *p) {
    static const struct engine engine = {
        .rows = LINES, .columns = LINES, .unit = STEP_8, .depth = 2048, .stretch = 512, .size = 1,
        .left_bytes = STEP_BYTES, .right_bytes = STEP_BYTES, .pack_left = pack_left_i8, .pack_right = pack_right_i8,
        .multiply = multiply_tiles_i8, .put = put_tile_i8, .begin = tiles_begin, .end = tiles_end,
    };
    return multiply_packed(p, &engine);
}
