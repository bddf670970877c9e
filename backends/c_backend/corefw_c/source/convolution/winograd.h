/* Which tiles Winograd's algorithm takes, and where they lie (winograd.inc has the transforms). */
#ifndef COREFW_WINOGRAD_H
#define COREFW_WINOGRAD_H

#include "convolution/convolution_geometry.h"
#include "convolution/convolution_storage.h"

/* Where it pays. */
enum {
    FEWEST_CHANNELS = 16,
    FEWEST_TILES = 48,  /* of 2 by 2 results, */
    FEWEST_SUMMED = 64, /* for a gradient of weights */
};

enum {
    MOST_SIZE = 4, /* of a tile: results a side, */
    MOST_SIDE = 6, /* and inputs a side */
};

/* The points of tiles of 4 by 4 results, and what their rows in the matrix of weights are multiplied by. */
#define POINT_A ((REAL)5 / 8)
#define POINT_B ((REAL)3 / 2)
#define SQUARE_A (POINT_A * POINT_A)
#define SQUARE_B (POINT_B * POINT_B)
#define SCALE_A (1 / (2 * SQUARE_A * (SQUARE_A - SQUARE_B)))
#define SCALE_B (1 / (2 * SQUARE_B * (SQUARE_B - SQUARE_A)))

/* Whether Winograd's algorithm fits: images, weights of 3 x 3 one by one, and enough channels and tiles to pay for
 * the transforms. */
static inline bool suits_winograd(const struct convolution *p, ssize_t fewest_tiles) {
    if (p->axes != 2 || p->in_channels < FEWEST_CHANNELS || p->out_channels < FEWEST_CHANNELS) return false;
    ssize_t tiles = p->samples;
    for (int i = 0; i < 2; i++) {
        const struct axis *a = &p->axis[i];
        if (a->kernel != 3 || a->stride != 1 || a->dilation != 1 || a->out < 4) return false;
        tiles *= blocks_of(a->out, 2);
    }
    return tiles >= fewest_tiles;
}

/* The products of a plane of results for a pair of channels. */
static inline ssize_t products_of_plane(const struct convolution *p, int size) {
    return (size + 2) * (size + 2) * blocks_of(p->axis[0].out, size) * blocks_of(p->axis[1].out, size);
}

/* The size of tiles: 4 by 4 results are exact enough where they are rounded to a half type, and have fewer products but for the
 * smallest images. */
static inline int tile_size(const struct convolution *p, const struct storage *stored) {
    return stored->half.widen && products_of_plane(p, 4) < products_of_plane(p, 2) ? 4 : 2;
}

/* Whether tiles of 4 by 4 results in float32 beat the products of all, of pairs of bfloat16, twice as many at a time. The
 * transforms cost up to 0.3 of these. Measured on two cores of Zen 5, 16 images and 64 channels, the time of pairs by that of
 * tiles, forward and for the weight's gradient: 2.1 and 2.3 for images of 4 x 4 (half the time for products), 1.1 and 1.1 of
 * 14 x 14 (0.65), 0.8 and 1.1 of 10 x 10 (0.72), 0.7 and 1.0 of 9 x 9 (0.89). */
static inline bool beats_pairs(const struct convolution *p, ssize_t fewest_tiles) {
    return suits_winograd(p, fewest_tiles) && 20 * products_of_plane(p, 4) < 7 * p->taps * p->out_size;
}

/* A function whose first argument, the size of tiles, is a constant, and its call. */
#define OF_SIZE static inline __attribute__((always_inline))
#define BY_SIZE(function, size, ...)                                                                                   \
    ((size) == 2 || sizeof(REAL) > sizeof(float) ? function(2, __VA_ARGS__) : function(4, __VA_ARGS__))

/* The tiles as places of a convolution whose windows are the inputs that each of them takes. */
static inline struct convolution tiles_of_inputs(const struct convolution *p, int size) {
    struct convolution q = *p;
    q.transposed = false;
    q.planes = q.out_size = q.taps = 1;
    for (int i = 0; i < 2; i++) {
        ssize_t out = blocks_of(p->axis[i].out, size);
        ssize_t padding = p->transposed ? 2 - p->axis[i].padding : p->axis[i].padding;
        q.axis[i] = (struct axis){.in = p->axis[i].in,
                                  .out = out,
                                  .kernel = size + 2,
                                  .stride = size,
                                  .dilation = 1,
                                  .padding = padding,
                                  .planes = size,
                                  .passes = 1,
                                  .after = 1,
                                  .last = out};
        q.planes *= size;
        q.taps *= size + 2;
        q.out_size *= out;
    }
    return q;
}

/* The same with windows of the results themselves. */
static inline struct convolution tiles_of_results(const struct convolution *p, int size) {
    struct convolution q = tiles_of_inputs(p, size);
    q.in_channels = p->out_channels;
    q.in_size = p->out_size;
    q.taps = size * size;
    for (int i = 0; i < 2; i++)
        q.axis[i].in = p->axis[i].out, q.axis[i].kernel = size, q.axis[i].padding = 0;
    return q;
}

#endif
