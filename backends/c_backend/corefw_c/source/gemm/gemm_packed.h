/* Matrix products of numbers that are summed in a wider type: half types in float32, int8 in int32. */
#ifndef COREFW_GEMM_PACKED_H
#define COREFW_GEMM_PACKED_H

#include "gemm/gemm_few.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    SLAB = 64,         /* elements of k that one thread packs of rows that are contiguous across k */
    MOST_COLUMNS = 32, /* of a tile */
};

/* What multiplies packed panels. Lines are rows of the left factor or columns of the right one; `unit` neighbours along k
 * are packed together, zeros beyond k. A tile is an array [rows][columns] of sums, of four bytes each. */
struct engine {
    int rows, columns, unit;         /* at most MOST_COLUMNS of both */
    int least_rows;                  /* of which any multiple costs about as much as it has rows */
    ssize_t depth, stretch;          /* of k at most in a block, and at once: a right panel of it stays in the first cache */
    ssize_t size;                    /* of an element of the factors */
    ssize_t left_bytes, right_bytes; /* of a unit of a panel */
    int width;                       /* columns of a right panel's row that lie together, for convolutions, which make it */
    /* Pack lines from `source`, `line` elements apart, with elements `along` apart. */
    void (*pack_left)(ssize_t k, int lines, const void *source, ssize_t line, ssize_t along, void *packed);
    void (*pack_right)(ssize_t k, int lines, const void *source, ssize_t line, ssize_t along, void *packed);
    /* sums = (more ? sums : 0) + left right; only `rows` and `columns` of it matter. `line` is 0 for a packed left panel.
     * `next` is what will be read later, and may be asked for. */
    void (*multiply)(ssize_t k, const void *left, ssize_t line, const void *right, int rows, int columns, bool more,
                     void *sums, const void *next);
    /* Whether a thread asks for the lines of its next right panel while it multiplies, where they are contiguous along k, and
     * packs columns of its own if so many rows' left panels stay in its cache. */
    bool asks;
    /* Whether tiles are square, and rows of the left factor that are contiguous along k, `line` bytes apart, need no
     * packing: then few rows of c are computed as columns of its transpose. */
    bool direct;
    /* Write the part of c that begins at (row, column); false if `otherwise` must compute the product. */
    bool (*put)(const struct product *p, ssize_t row, ssize_t column, int rows, int columns, const void *sums);
    void (*begin)(void), (*end)(void); /* around the work of a thread; may be NULL */
    multiplication *otherwise;
};

bool multiply_packed(const struct product *p, const struct engine *with);

/* The engines of half types, by what multiplies. bf16_pairs is there with AVX512 alone; a unit of tiles has two of 16
 * lines. */
extern const struct engine bf16_floats, f16_floats, bf16_pairs, bf16_tiles, f16_tiles;

/* Write alpha sums + beta added for sums of float32, rows of which lie `sums_row` apart, at most MOST_COLUMNS. */
typedef void put_sums(const struct product *p, ssize_t row, ssize_t column, int rows, int columns, const float *sums,
                      int sums_row);
put_sums put_bf16, put_f16;

/* The same for AVX512 alone, for tiles whose sums are rows of MOST_COLUMNS, all wanted, and what is added is contiguous.
 * put_rows_bf16 takes numbers below the normal ones for zeros, and needs AVX512-BF16; put_rows_f16 returns false if a sum
 * is NaN. */
static inline bool has_whole_rows(const struct product *p, int columns) {
    return columns == MOST_COLUMNS && (!p->added || p->added_column == 1);
}
void put_rows_bf16(const struct product *p, ssize_t row, ssize_t column, int rows, const float *sums);
bool put_rows_f16(const struct product *p, ssize_t row, ssize_t column, int rows, const float *sums);

/* Write sums of int32, or the floats that they stand for. */
typedef void put_integers(const struct product *p, ssize_t row, ssize_t column, int rows, int columns,
                          const int32_t *sums, int sums_row);
put_integers put_i32, put_dequantized;

#endif
