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

enum {
    WORDS = 16,
    LINES = 2 * TILE_SIDE,
    STEP_BYTES = 2 * TILE_BYTES,
    AHEAD = 4, /* lines, or steps, that are asked for before they are packed */
};

typedef uint32_t tile_words[TILE_SIDE][WORDS];

/* -- packing -- */
#if VECTOR_BYTES == 64
/* Sixteen lines of words, `line` bytes apart, transposed. */
static inline void transpose_lines(const char *source, ssize_t line, tile_words words) {
    vector_u32 rows[TILE_SIDE];
    UNROLL for (int i = 0; i < TILE_SIDE; i++) memcpy(&rows[i], source + i * line, sizeof rows[i]);
    UNROLL for (int i = 0; i < TILE_SIDE; i++) __builtin_prefetch(source + i * line + AHEAD * 64);
    transpose_u32(rows);
    UNROLL for (int i = 0; i < TILE_SIDE; i++) memcpy(words[i], &rows[i], sizeof rows[i]);
}

static void transpose_words(tile_words words) { transpose_lines((const char *)words, 64, words); }
#else
static void transpose_words(tile_words words) {
    for (int i = 0; i < TILE_SIDE; i++)
        for (int j = 0; j < i; j++) {
            uint32_t word = words[i][j];
            words[i][j] = words[j][i], words[j][i] = word;
        }
}

static inline void transpose_lines(const char *source, ssize_t line, tile_words words) {
    for (int i = 0; i < TILE_SIDE; i++) memcpy(words[i], source + i * line, 64);
    transpose_words(words);
}
#endif

/* Lines of `bytes` each that are contiguous along k: as words of lines. */
static void pack_lines(ssize_t bytes, int lines, const char *source, ssize_t line, char *packed, ssize_t step_bytes) {
    for (int i = 0; i < lines; i++, source += line) {
        char *to = packed + i / TILE_SIDE * TILE_BYTES + i % TILE_SIDE * 64;
        ssize_t l = 0;
        for (; l + 64 <= bytes; l += 64, to += step_bytes) {
            __builtin_prefetch(source + AHEAD * line + l);
            memcpy(to, source + l, 64);
        }
        if (l < bytes) memset(to, 0, 64), memcpy(to, source + l, (size_t)(bytes - l));
    }
}

/* The same as lines of words. */
static void pack_lines_across(ssize_t bytes, int lines, const char *source, ssize_t line, char *packed,
                              ssize_t step_bytes) {
    for (ssize_t l = 0; l < bytes; l += 64, packed += step_bytes)
        for (int first = 0; first < lines; first += TILE_SIDE) {
            const char *from = source + first * line + l;
            uint32_t(*words)[WORDS] = (uint32_t(*)[WORDS])(packed + first / TILE_SIDE * TILE_BYTES);
            int there = lines - first < TILE_SIDE ? lines - first : TILE_SIDE;
            size_t size = bytes - l < 64 ? (size_t)(bytes - l) : 64;
            if (there == TILE_SIDE && size == 64) {
                transpose_lines(from, line, words);
                continue;
            }
            memset(words, 0, sizeof(tile_words));
            for (int i = 0; i < there; i++) memcpy(words[i], from + i * line, size);
            transpose_words(words);
        }
}

/* Pairs of rows of 32 halves, neighbours along k, as rows of words of both tiles; returns how many rows whole steps have. */
static ssize_t pack_row_pairs(ssize_t k, const uint16_t *source, ssize_t along, char *packed, ssize_t step_bytes) {
#if VECTOR_BYTES == 64
    typedef uint16_t halves __attribute__((vector_size(64)));
    for (ssize_t l = 0; l + LINES <= k; l += LINES, packed += step_bytes, source += LINES * along) {
        halves second[TILE_SIDE]; /* stored together, in the order of memory */
        UNROLL for (int i = 0; i < TILE_SIDE; i++) {
            halves even, odd;
            memcpy(&even, source + 2 * i * along, sizeof even), memcpy(&odd, source + (2 * i + 1) * along, sizeof odd);
            halves first = __builtin_shufflevector(even, odd, 0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39, 8,
                                                   40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47);
            second[i] = __builtin_shufflevector(even, odd, 16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55,
                                                24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63);
            memcpy(packed + i * 64, &first, sizeof first);
        }
        UNROLL for (int i = 0; i < TILE_SIDE; i++) memcpy(packed + TILE_BYTES + i * 64, &second[i], sizeof second[i]);
    }
    return k / LINES * LINES;
#else
    return (void)k, (void)source, (void)along, (void)packed, (void)step_bytes, 0;
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

/* One of the left factor's tiles after the other, so that loads of the next ones overlap with products. Left panels pass
 * by once for each right panel: they shall not take its place in the first cache. LEFT and RIGHT load tiles, or are KEPT. */
#define KEPT(t, from, step)
#define MULTIPLY(PRODUCT, LEFT, a, RIGHT, b)                                                                           \
    RIGHT(6, b, 64);                                                                                                   \
    LEFT(4, a, line);                                                                                                  \
    PRODUCT(0, 4, 6);                                                                                                  \
    UNROLL for (int i = 0; i < 4; i++) __builtin_prefetch(later + i * 64, 0, 2);                                       \
    later += 256;                                                                                                      \
    if (tall) { LEFT(5, a + TILE_SIDE * line, line); PRODUCT(2, 5, 6); }                                               \
    if (wide) { RIGHT(7, b + TILE_BYTES, 64); PRODUCT(1, 4, 7); }                                                      \
    if (tall && wide) { PRODUCT(3, 5, 7); }

/* Adds up steps of STEP elements; PRODUCTS is what to do for a step, at a and b, of `bytes` each. */
#define DEFINE_MULTIPLY(suffix, STEP, bytes, PRODUCTS)                                                                 \
    static TILE_FUNCTION void multiply_tiles_##suffix(ssize_t k, const void *left, ssize_t line, const void *right,    \
                                                      int rows, int columns, bool more, void *sums, const void *next) {\
        TILE_REGISTERS;                                                                                                \
        const char *a = left, *b = right, *later = next;                                                                              \
        char *c = sums;                                                                                                \
        bool tall = rows > TILE_SIDE, wide = columns > TILE_SIDE;                                                      \
        ssize_t step = line ? 64 : bytes;                                                                              \
        if (!line) line = 64;                                                                                          \
        if (more) {                                                                                                    \
            TILE_LOAD_ONCE(0, c, SUMS_ROW);                                                                                 \
            TILE_LOAD_ONCE(1, c + SUMS_ROW / 2, SUMS_ROW);                                                                  \
            TILE_LOAD_ONCE(2, c + TILE_SIDE * SUMS_ROW, SUMS_ROW);                                                          \
            TILE_LOAD_ONCE(3, c + TILE_SIDE * SUMS_ROW + SUMS_ROW / 2, SUMS_ROW);                                           \
        } else {                                                                                                       \
            TILE_ZERO(0);                                                                                              \
            TILE_ZERO(1);                                                                                              \
            TILE_ZERO(2);                                                                                              \
            TILE_ZERO(3);                                                                                              \
        }                                                                                                              \
        for (ssize_t l = 0; l < k; l += STEP, a += step, b += bytes) { PRODUCTS }                                      \
        TILE_STORE(0, c, SUMS_ROW);                                                                                    \
        TILE_STORE(1, c + SUMS_ROW / 2, SUMS_ROW);                                                                     \
        TILE_STORE(2, c + TILE_SIDE * SUMS_ROW, SUMS_ROW);                                                             \
        TILE_STORE(3, c + TILE_SIDE * SUMS_ROW + SUMS_ROW / 2, SUMS_ROW);                                              \
    }
DEFINE_MULTIPLY(bf16, STEP_16, STEP_BYTES, MULTIPLY(TILE_PRODUCT_BF16, TILE_LOAD_ONCE, a, TILE_LOAD, b))
DEFINE_MULTIPLY(i8, STEP_8, STEP_BYTES, MULTIPLY(TILE_PRODUCT_I8, TILE_LOAD_ONCE, a, TILE_LOAD, b))
DEFINE_MULTIPLY(f16, STEP_16, 2 * STEP_BYTES,
                MULTIPLY(TILE_PRODUCT_BF16, TILE_LOAD_ONCE, a, TILE_LOAD, b)
                MULTIPLY(TILE_PRODUCT_BF16, KEPT, a, TILE_LOAD, (b + STEP_BYTES))
                MULTIPLY(TILE_PRODUCT_BF16, TILE_LOAD_ONCE, (a + STEP_BYTES), KEPT, b)
                MULTIPLY(TILE_PRODUCT_BF16, KEPT, a, TILE_LOAD, b))

/* -- results -- */
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

static bool put_tile_floats(const struct product *p, ssize_t row, ssize_t column, int rows, int columns,
                            const void *sums) {
    return put_dequantized(p, row, column, rows, columns, sums, LINES), true;
}

/* -- the products -- */
const struct engine bf16_tiles = {
    .rows = LINES, .least_rows = LINES, .columns = LINES, .unit = STEP_16, .depth = 2048, .stretch = 512, .size = 2, .direct = true,
    .left_bytes = STEP_BYTES, .right_bytes = STEP_BYTES, .width = TILE_SIDE,
    .pack_left = pack_left_bf16, .pack_right = pack_right_bf16,
    .multiply = multiply_tiles_bf16, .put = put_tile_bf16, .begin = tiles_begin, .end = tiles_end,
};

bool multiply_bf16_by_tiles(const struct product *p) {
    struct few most = {.beside_columns = 1, .of_any_depth = 1, .beside_rows = 4}; /* tiles read more columns as they lie */
    return multiply_few_bf16_by_pairs(p, most) || multiply_packed(p, &bf16_tiles);
}

const struct engine f16_tiles = {
    .rows = LINES, .least_rows = LINES, .columns = LINES, .unit = STEP_16, .depth = 1024, .stretch = 256, .size = 2,
    .left_bytes = 2 * STEP_BYTES, .right_bytes = 2 * STEP_BYTES, .pack_left = pack_left_f16,
    .pack_right = pack_right_f16, .multiply = multiply_tiles_f16, .put = put_tile_f16, .begin = tiles_begin,
    .end = tiles_end, .otherwise = multiply_f16,
};

bool multiply_f16_by_tiles(const struct product *p) {
    struct few most = {.beside_columns = 8, .of_any_depth = 2, .beside_rows = 8};
    return multiply_few_f16(p, most) || multiply_packed(p, &f16_tiles);
}

#define ENGINE_I8(put_sums)                                                                                            \
    {                                                                                                                  \
        .rows = LINES, .least_rows = LINES, .columns = LINES, .unit = STEP_8, .depth = 4096, .stretch = 1024, .size = 1, .direct = true,    \
        .left_bytes = STEP_BYTES, .right_bytes = STEP_BYTES, .pack_left = pack_left_i8, .pack_right = pack_right_i8,   \
        .multiply = multiply_tiles_i8, .put = put_sums, .begin = tiles_begin, .end = tiles_end,                        \
    }

bool multiply_i8_by_tiles(const struct product *p) {
    static const struct engine engine = ENGINE_I8(put_tile_i8);
    return multiply_packed(p, &engine);
}

bool multiply_i8_to_floats_by_tiles(const struct product *p) {
    static const struct engine engine = ENGINE_I8(put_tile_floats);
    return multiply_packed(p, &engine);
}
