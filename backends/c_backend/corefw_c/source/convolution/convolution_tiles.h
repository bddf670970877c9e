/* Convolutions of bfloat16 as products by tiles (convolution.c has those of real numbers). */
#ifndef COREFW_CONVOLUTION_TILES_H
#define COREFW_CONVOLUTION_TILES_H

#include "convolution/convolution_geometry.h"

/* The convolution of arrays of bfloat16, and the gradient of its weight; `bias` may be NULL. Return false without memory. */
bool convolve_bf16(const struct convolution *problem, const struct tap_order *order, const uint16_t *input,
                   const uint16_t *weight, const uint16_t *bias, uint16_t *output);
bool weight_gradient_bf16(const struct convolution *problem, const uint16_t *input, const uint16_t *output_grad,
                          uint16_t *weight_grad);

/* What both are made of. */
enum {
    LINES = 32,        /* rows and columns of a block of sums */
    STEP_WORDS = 16,   /* of a step of a panel, two elements each; a step has two tiles of 16 lines */
    STEP_HALVES = 32,
    ROW_BYTES = 64,
    STRETCH_STEPS = 8, /* whose panels fit the first-level cache */
};

/* Parts of a row of a tile: where it comes from, and its first column. */
struct piece {
    ssize_t source, column;
};

/* The runs of a tile's columns as pieces of one width, a power of two up to `most`; the last piece of a run may be longer
 * than it: what is too much is overwritten by what comes next, and up to a row beyond the tile. */
struct pieces {
    int count;
    ssize_t width, columns;
    struct piece piece[STEP_HALVES];
};
int cut_into_pieces(struct walk *places, int most, struct pieces *pieces); /* returns how many columns */

/* GATHER(count, width) of pieces of `most` columns, with a width that the compiler knows, and with the count where it is
 * that of whole pieces. */
#define GATHER_BY_WIDTH(pieces, most)                                                                                  \
    do {                                                                                                               \
        if ((pieces)->width == (most) && (pieces)->count == 1) GATHER(1, most);                                        \
        else if ((pieces)->width == (most)) GATHER((pieces)->count, most);                                             \
        else if ((pieces)->width == (most) / 2 && (pieces)->count == 2) GATHER(2, (most) / 2);                         \
        else if ((pieces)->width == (most) / 2) GATHER((pieces)->count, (most) / 2);                                   \
        else if ((pieces)->count == 4) GATHER(4, (most) / 4);                                                          \
        else GATHER((pieces)->count, (most) / 4);                                                                      \
    } while (0)

#endif
