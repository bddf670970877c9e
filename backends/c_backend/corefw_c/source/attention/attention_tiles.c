/* Products of attention by the processor's tiles: of bfloat16, and of floats as sums of two bfloat16.
 *
 * Each block of 32 by 32 sums is made by the engine of matrix products (gemm/gemm_tiles.c), then scaled and added where
 * it belongs. */
#include "attention/attention_halves.h"
#include "core/halves.h"
#include "gemm/gemm_packed.h"
#include "gemm/gemm_tile.h"

#include <string.h>

enum {
    SIDE = PACKED_UNIT, /* of a block of sums, and elements of a step */
    STEP_BYTES = 2048,  /* of 32 lines */
    COLUMNS = 2 * LANES_f32,
};

static inline ssize_t steps_of(ssize_t n) { return (n + SIDE - 1) / SIDE; }

static inline int at_most_a_side(ssize_t n) { return (int)(n < SIDE ? n : SIDE); }

/* c[i][j] = (more ? c[i][j] : 0) + factor * sums[i][j], for rows of c that are `row` apart. */
static inline void add_scaled(int rows, ssize_t columns, float factor, const float *sums, bool more, float *c,
                              ssize_t row) {
    for (int i = 0; i < rows; i++, sums += SIDE, c += row)
        if (more)
            for (ssize_t j = 0; j < columns; j++) c[j] += factor * sums[j];
        else
            for (ssize_t j = 0; j < columns; j++) c[j] = factor * sums[j];
}

/* y as columns. */
static void pack(ssize_t count, ssize_t width, const uint16_t *y, ssize_t row, ssize_t column, void *packed) {
    for (ssize_t l = 0; l < width; l += SLAB)
        bf16_tiles.pack_right(width - l < SLAB ? width - l : SLAB, (int)count, y + l * column, row, column,
                              (char *)packed + l / SIDE * STEP_BYTES);
}

static void meet(ssize_t n, ssize_t used, ssize_t width, const uint16_t *x, ssize_t row, const void *packed,
                 float factor, bool more, float *c) {
    float sums[SIDE * SIDE];
    for (ssize_t i = 0; i < n; i += SIDE, x += SIDE * row, c += SIDE * COLUMNS) {
        int rows = at_most_a_side(n - i);
        bf16_tiles.multiply(width, x, row * (ssize_t)sizeof *x, packed, rows, (int)used, false, sums, packed);
        add_scaled(rows, used, factor, sums, more, c, COLUMNS);
    }
}

/* The greater half is rounded, too, so that the lesser one is exact to 16 bits; what infinity leaves is nothing. */
static void split(ssize_t n, ssize_t count, const float *floats, struct split *split) {
    for (ssize_t i = 0; i < n; i++, floats += COLUMNS) {
        float rest[COLUMNS];
        narrow_bfloat16(count, floats, split->high[i]);
        for (ssize_t j = 0; j < count; j++) {
            rest[j] = floats[j] - float_of_bfloat16(split->high[i][j]);
            rest[j] = rest[j] == rest[j] ? rest[j] : 0;
        }
        narrow_bfloat16(count, rest, split->low[i]);
        memset(split->high[i] + count, 0, (size_t)(SIDE - count) * sizeof(uint16_t));
        memset(split->low[i] + count, 0, (size_t)(SIDE - count) * sizeof(uint16_t));
    }
}

static bool are_finite(ssize_t rows, ssize_t width, const uint16_t *x, ssize_t row, ssize_t column) {
    enum { EXPONENT = 0x7F80 };
    uint16_t any = 0;
    for (ssize_t i = 0; i < rows; i++, x += row)
        if (column == 1)
            for (ssize_t j = 0; j < width; j++) any |= (x[j] & EXPONENT) == EXPONENT;
        else
            for (ssize_t j = 0; j < width; j++) any |= (x[j * column] & EXPONENT) == EXPONENT;
    return !any;
}

/* The transpose of x as rows, in panels that have steps for the most keys. */
static bool pack_block(ssize_t n, ssize_t width, const uint16_t *x, ssize_t row, ssize_t column, void *packed) {
    if (!are_finite(n, width, x, row, column)) return false;
    for (ssize_t i = 0; i < width; i += SIDE)
        bf16_tiles.pack_left(n, at_most_a_side(width - i), x + i * column, column, row,
                             (char *)packed + i / SIDE * (MOST_KEYS / SIDE * STEP_BYTES));
    return true;
}

static void sum_keys(ssize_t n, ssize_t used, ssize_t width, const void *block, const struct split *floats, bool more,
                     float *to) {
    char packed[2][MOST_KEYS / SIDE * STEP_BYTES] __attribute__((aligned(64)));
    for (ssize_t i = 0; i < n; i += SLAB) {
        ssize_t k = n - i < SLAB ? n - i : SLAB;
        bf16_tiles.pack_right(k, SIDE, floats->high[i], 1, SIDE, packed[0] + i / SIDE * STEP_BYTES);
        bf16_tiles.pack_right(k, SIDE, floats->low[i], 1, SIDE, packed[1] + i / SIDE * STEP_BYTES);
    }
    const char *left = block;
    float sums[SIDE * SIDE];
    for (ssize_t i = 0; i < width; i += SIDE, left += MOST_KEYS / SIDE * STEP_BYTES, to += SIDE * COLUMNS) {
        int rows = at_most_a_side(width - i);
        bf16_tiles.multiply(n, left, 0, packed[1], rows, (int)used, false, sums, packed[0]);
        bf16_tiles.multiply(n, left, 0, packed[0], rows, (int)used, true, sums, packed[1]);
        add_scaled(rows, used, 1, sums, more, to, COLUMNS);
    }
}

/* Of y, a step of queries for 32 columns at a time. */
static bool pack_panel(ssize_t count, ssize_t width, const uint16_t *y, ssize_t row, ssize_t column, void *packed) {
    if (!are_finite(count, width, y, row, column)) return false;
    for (ssize_t j = 0; j < width; j += SIDE)
        bf16_tiles.pack_right(count, at_most_a_side(width - j), y + j * column, column, row,
                              (char *)packed + j / SIDE * STEP_BYTES);
    return true;
}

static void add_queries(ssize_t n, ssize_t width, const struct split *floats, const void *panel, float factor,
                        float *to, ssize_t row) {
    float sums[SIDE * SIDE];
    for (ssize_t i = 0; i < n; i += SIDE)
        for (ssize_t j = 0; j < width; j += SIDE) {
            const char *right = (const char *)panel + j / SIDE * STEP_BYTES;
            int rows = at_most_a_side(n - i), columns = at_most_a_side(width - j);
            bf16_tiles.multiply(SIDE, floats->low[i], sizeof floats->low[i], right, rows, columns, false, sums, right);
            bf16_tiles.multiply(SIDE, floats->high[i], sizeof floats->high[i], right, rows, columns, true, sums, right);
            add_scaled(rows, columns, factor, sums, true, to + i * row + j, row);
        }
}

static void begin(void) { bf16_tiles.begin(); }

static void end(void) { bf16_tiles.end(); }

const struct halves_engine attention_tiles = {
    .begin = begin, .end = end,
    .rows = SIDE, .unit = SIDE, .pack = pack, .meet = meet, .split = split, .pack_block = pack_block,
    .pack_panel = pack_panel, .sum_keys = sum_keys, .add_queries = add_queries,
};
