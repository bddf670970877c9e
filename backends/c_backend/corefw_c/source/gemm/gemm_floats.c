/* Products of half types on any processor: panels are widened to float32 while they are packed. */
#include "gemm/gemm_packed.h"

#include "core/halves.h"

#include <stdint.h>
#include <string.h>

#include "gemm/gemm_transpose.h"

#define REAL float
#define OF_REAL(name) name##_f32
#include "gemm/gemm_pack.inc"

enum { COLUMNS = TILE_COLUMNS_f32, LINES = COLUMNS > TILE_ROWS ? COLUMNS : TILE_ROWS, STRETCH = 64 };

typedef void widening(ssize_t n, const void *halves, void *floats);

/* A panel as pack_left and pack_right make it of floats. */
static void pack_widened(widening *widen, int width, ssize_t k, int lines, const uint16_t *source, ssize_t line,
                         ssize_t along, float *packed) {
    if (line == 1) {
        for (ssize_t l = 0; l < k; l++) widen(lines, source + l * along, packed + l * width);
        return;
    }
    for (ssize_t l = 0; l < k; l += STRETCH) {
        ssize_t n = k - l < STRETCH ? k - l : STRETCH;
        float floats[LINES * STRETCH];
        for (int i = 0; i < lines; i++) {
            const uint16_t *from = source + i * line + l * along;
            uint16_t dense[STRETCH];
            for (ssize_t j = 0; j < n && along != 1; j++) dense[j] = from[j * along];
            widen(n, along == 1 ? from : dense, floats + i * STRETCH);
        }
        if (width == TILE_ROWS) pack_left_f32(n, lines, floats, STRETCH, 1, packed + l * width);
        else pack_right_f32(n, lines, floats, 1, STRETCH, packed + l * width);
    }
}

static void multiply_floats(ssize_t k, const void *left, ssize_t line, const void *right, int rows, int columns,
                            bool more, void *sums, const void *next) {
    (void)line, (void)next;
    packed_tile_f32(k, left, right, COLUMNS, more ? sums : NULL, COLUMNS, sums, COLUMNS, rows, columns);
}

/* The engine of a half type, and its product. */
#define DEFINE_ENGINE(half, widen)                                                                                     \
    static void pack_left_##half(ssize_t k, int lines, const void *source, ssize_t line, ssize_t along, void *packed) {\
        pack_widened(widen, TILE_ROWS, k, lines, source, line, along, packed);                                         \
    }                                                                                                                  \
    static void pack_right_##half(ssize_t k, int lines, const void *source, ssize_t line, ssize_t along, void *packed) {\
        pack_widened(widen, COLUMNS, k, lines, source, line, along, packed);                                           \
    }                                                                                                                  \
    static bool put_##half##_tile(const struct product *p, ssize_t row, ssize_t column, int rows, int columns,         \
                                  const void *sums) {                                                                  \
        return put_##half(p, row, column, rows, columns, sums, COLUMNS), true;                                         \
    }                                                                                                                  \
    const struct engine half##_floats = {                                                                              \
        .rows = TILE_ROWS, .least_rows = 2, .columns = COLUMNS, .unit = 1, .depth = 512, .stretch = 512, .size = 2,    \
        .left_bytes = TILE_ROWS * sizeof(float), .right_bytes = COLUMNS * sizeof(float),                               \
        .pack_left = pack_left_##half, .pack_right = pack_right_##half, .multiply = multiply_floats,                   \
        .put = put_##half##_tile,                                                                                      \
    };                                                                                                                 \
    bool multiply_##half(const struct product *p) {                                                                    \
        struct few most = {.beside_columns = MOST_COLUMNS, .of_any_depth = 2, .beside_rows = 16};                      \
        return multiply_few_##half(p, most) || multiply_packed(p, &half##_floats);                                     \
    }
DEFINE_ENGINE(bf16, widen_bfloat16)
DEFINE_ENGINE(f16, widen_float16)
