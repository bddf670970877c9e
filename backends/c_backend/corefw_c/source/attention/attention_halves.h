/* Products of attention with bfloat16 as it is, summed in float: by the processor's pairs and by its tiles. */
#ifndef COREFW_ATTENTION_HALVES_H
#define COREFW_ATTENTION_HALVES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Elements by which a matrix of halves may grow where it is packed, and floats that an element of a panel may take. */
enum { PACKED_UNIT = 32, PACKED_FLOATS = 16, MOST_KEYS = 128 /* of a block */ };

/* Floats of a block and a panel as sums of two bfloat16, which leave out the 17th bit and what follows it: rows of a
 * tile's length, with zeros beyond the queries. */
struct split {
    uint16_t high[MOST_KEYS][PACKED_UNIT], low[MOST_KEYS][PACKED_UNIT];
};

/* Blocks of keys or values, x, meet panels of queries or gradients, y. Floats of a block and a panel are an array
 * [key][column] with a column for each query; `used` of the columns matter. */
struct halves_engine {
    int rows, unit; /* `meet` reads multiples of so many rows, and elements, which are zeros beyond x */
    void (*begin)(void), (*end)(void); /* around the work of a thread; may be NULL */
    /* Pack y for `meet`. */
    void (*pack)(ssize_t count, ssize_t width, const uint16_t *y, ssize_t row, ssize_t column, void *packed);
    /* c[i][j] = (more ? c[i][j] : 0) + factor * sum(x[i] y[j]), for n rows of x, contiguous and `row` elements apart. */
    void (*meet)(ssize_t n, ssize_t used, ssize_t width, const uint16_t *x, ssize_t row, const void *packed,
                 float factor, bool more, float *c);
    /* What follows is NULL where floats meet halves as floats.
     *
     * Floats of a block and a panel of `count` queries, n rows, as halves whose sums they are. */
    void (*split)(ssize_t n, ssize_t count, const float *floats, struct split *split);
    /* Pack x, and y, as the factors that floats meet; false if not all of them are finite: floats are not, either, as the
     * sum of two products with infinity. */
    bool (*pack_block)(ssize_t n, ssize_t width, const uint16_t *x, ssize_t row, ssize_t column, void *packed);
    bool (*pack_panel)(ssize_t count, ssize_t width, const uint16_t *y, ssize_t row, ssize_t column, void *packed);
    /* sums[i][j] = (more ? sums[i][j] : 0) + the sum over the n keys of x[key][i] floats[key][j], for i < width. */
    void (*sum_keys)(ssize_t n, ssize_t used, ssize_t width, const void *block, const struct split *floats, bool more,
                     float *sums);
    /* sums[i][j] += factor * the sum over the queries of floats[i][query] y[query][j], for n rows `row` apart. */
    void (*add_queries)(ssize_t n, ssize_t width, const struct split *floats, const void *panel, float factor,
                        float *sums, ssize_t row);
};

extern const struct halves_engine attention_tiles;
extern const struct halves_engine *const attention_pairs; /* NULL where the compiler makes no such instructions */

#endif
