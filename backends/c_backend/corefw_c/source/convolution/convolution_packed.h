/* Convolutions of bfloat16 as products of pairs (convolution.c has those of real numbers). */
#ifndef COREFW_CONVOLUTION_PACKED_H
#define COREFW_CONVOLUTION_PACKED_H

#include "convolution/convolution_geometry.h"
#include "core/sizes.h"
#include "gemm/gemm_packed.h"

/* The convolution of arrays of bfloat16, and the gradient of its weight, by an engine whose elements are pairs; `bias` may
 * be NULL. Return false without memory. */
bool convolve_packed(const struct engine *engine, const struct convolution *problem, const struct tap_order *order,
                     const uint16_t *input, const uint16_t *weight, const float *bias, uint16_t *output);
bool weight_gradient_packed(const struct engine *engine, const struct convolution *problem, const uint16_t *input,
                            const uint16_t *output_grad, uint16_t *weight_grad);

/* What both are made of. */
enum {
    LINES = 32,     /* rows and columns of a block of sums at most */
    ROW_WORDS = 16, /* of two elements, that are moved at once */
    PIECES = 32,
};

/* The bytes that a panel takes: an engine, or the last piece of a row, may write somewhat more. */
static inline ssize_t room_of(ssize_t bytes) { return size_times(size_plus(bytes, 4 * LINES + 63) / 64, 64); }

/* Where a block of rows begins: blocks are about equal, and multiples of what costs an engine the same. */
static inline ssize_t block_start(const struct engine *e, ssize_t rows, ssize_t block) {
    return smaller(blocks_of(rows, e->least_rows) * block / blocks_of(rows, e->rows) * e->least_rows, rows);
}

/* Begin a walk over the elements of a plane in the first sample and the first channel, which others follow alike; returns
 * how far neighbours in a row lie apart. */
static inline ssize_t begin_plane(const struct convolution *p, const struct slab *places, const struct layout *layout,
                                  ssize_t plane, struct walk *rows) {
    *rows = elements_of_plane(p, places, layout, plane);
    rows->size[0] = smaller(rows->size[0], 1), rows->size[1] = smaller(rows->size[1], 1);
    ssize_t step = rows->source[rows->axes - 1];
    begin_walk(rows);
    return step;
}

/* Parts of a row: where it comes from, and its first column. */
struct piece {
    ssize_t source, column;
};

/* The runs of a row's columns as pieces of one width, a power of two up to `widest`; the last piece of a run may be longer
 * than it: what is too much is overwritten by what comes next, and up to a row beyond the last one. */
struct pieces {
    int count;
    ssize_t width, columns;
    struct piece piece[PIECES];
};
int cut_into_pieces(struct walk *places, int most, ssize_t widest, struct pieces *pieces); /* returns how many columns */

/* Ask for n elements of each of some rows, `row` apart: they are too short for the processor to foresee the next one.
 * Zen 5, 1 x 1, from memory: 256 channels of 56 x 56 to 64 1.4 times as fast, all of ResNet-50's 1.15. */
static inline void ask_for_halves(ssize_t rows, ssize_t n, const uint16_t *from, ssize_t row) {
    for (ssize_t i = 0; i < rows; i++)
        for (ssize_t j = 0; j < n; j += LINES) __builtin_prefetch(from + i * row + j, 0, 2);
}

/* GATHER(count, width) of pieces with a width that the compiler knows, and with the count where it is that of whole
 * pieces. */
#define GATHER_BY_WIDTH(pieces, widest)                                                                                \
    do {                                                                                                               \
        if ((pieces)->width == (widest) && (pieces)->count == 1) GATHER(1, widest);                                    \
        else if ((pieces)->width == (widest) && (pieces)->count == 2) GATHER(2, widest);                               \
        else if ((pieces)->width == (widest) && (pieces)->count == 3) GATHER(3, widest);                               \
        else if ((pieces)->width == (widest)) GATHER((pieces)->count, widest);                                         \
        else if ((pieces)->width == (widest) / 2 && (pieces)->count == 2) GATHER(2, (widest) / 2);                     \
        else if ((pieces)->width == (widest) / 2 && (pieces)->count == 4) GATHER(4, (widest) / 2);                     \
        else if ((pieces)->width == (widest) / 2) GATHER((pieces)->count, (widest) / 2);                               \
        else if ((pieces)->count == 4) GATHER(4, (widest) / 4);                                                        \
        else if ((pieces)->count == 8) GATHER(8, (widest) / 4);                                                        \
        else GATHER((pieces)->count, (widest) / 4);                                                                    \
    } while (0)

#endif
