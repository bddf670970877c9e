/* Matrix products of bfloat16 with the processor's dot products of pairs, AVX512-BF16: two multiplications where float
 * has one.
 *
 * Both factors are packed as pairs of neighbours along k, which take the place of single elements in the tiles of
 * gemm.inc. A tile's sums run over all of k in float32 and are rounded once. */
#include "gemm/gemm.h"
#include "gemm/gemm_blocks.h"
#include "kernels.h"
#include "core/halves.h"
#include "core/memory.h"

#include <stdint.h>
#include <string.h>

#include "gemm/gemm_transpose.h"

#if defined(__AVX512F__)
#include <immintrin.h>

enum {
    LANES = 16,
    COLUMNS = TILE_VECTORS * LANES,
    LEFT_BYTES = 512 << 10 /* of packed rows in the second-level cache */
};

/* Rounds to the nearest, of two to the even one. */
static uint16_t narrow(float x) {
    uint32_t bits = bits_f32(x);
    return (uint16_t)(x != x ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

int has_bfloat16_products(void) { return __builtin_cpu_supports("avx512bf16") != 0; }

/* sum[TILE_ROWS][COLUMNS] = a b, for a: columns of TILE_ROWS pairs, b: rows of COLUMNS pairs. */
static __attribute__((noinline, target("avx512bf16"))) void tile_bf16(ssize_t pairs, const uint32_t *a,
                                                                      const uint32_t *b, float *sum) {
    __m512 total[TILE_ROWS][TILE_VECTORS];
    UNROLL for (int i = 0; i < TILE_ROWS; i++)
        UNROLL for (int j = 0; j < TILE_VECTORS; j++) total[i][j] = _mm512_setzero_ps();
    for (ssize_t l = 0; l < pairs; l++, a += TILE_ROWS, b += COLUMNS) {
        __m512bh right[TILE_VECTORS];
        UNROLL for (int j = 0; j < TILE_VECTORS; j++) right[j] = (__m512bh)_mm512_loadu_si512(b + j * LANES);
        UNROLL for (int i = 0; i < TILE_ROWS; i++)
            UNROLL for (int j = 0; j < TILE_VECTORS; j++)
                total[i][j] = _mm512_dpbf16_ps(total[i][j], (__m512bh)_mm512_set1_epi32((int)a[i]), right[j]);
    }
    UNROLL for (int i = 0; i < TILE_ROWS; i++)
        UNROLL for (int j = 0; j < TILE_VECTORS; j++) _mm512_storeu_ps(sum + i * COLUMNS + j * LANES, total[i][j]);
}

/* Pairs of rows, for rows of contiguous pairs. */
static inline __attribute__((always_inline)) ssize_t pack_by_blocks(const int width, ssize_t pairs, int rows,
                                                                    const uint16_t *source, ssize_t row,
                                                                    uint32_t *packed) {
    ssize_t l = 0;
    for (; l + LANES <= pairs; l += LANES)
        for (int first = (rows - 1) / LANES * LANES; first >= 0; first -= LANES) { /* rewrites what spilled over */
            vector_u32 block[LANES];
            UNROLL for (int i = 0; i < LANES; i++) {
                int from = first + i < rows ? first + i : rows - 1;
                memcpy(&block[i], source + from * row + 2 * l, sizeof block[i]);
            }
            transpose_u32(block);
            UNROLL for (int i = 0; i < LANES; i++)
                memcpy(packed + (l + i) * width + first, &block[i], sizeof block[i]);
        }
    return l;
}

/* packed[l][i] = the elements (i, 2 l) and (i, 2 l + 1) of the source, zero beyond k; up to LANES pairs after the panel
 * are overwritten. */
static inline __attribute__((always_inline)) void pack_pairs(const int width, ssize_t k, int rows,
                                                             const uint16_t *source, ssize_t row, ssize_t column,
                                                             uint32_t *restrict packed) {
    ssize_t whole = k / 2, l = column == 1 ? pack_by_blocks(width, whole, rows, source, row, packed) : 0;
    for (; l < whole; l++) {
        const uint16_t *first = source + 2 * l * column, *second = first + column;
        if (row == 1)
            for (int i = 0; i < rows; i++) packed[l * width + i] = first[i] | (uint32_t)second[i] << 16;
        else
            for (int i = 0; i < rows; i++) packed[l * width + i] = first[i * row] | (uint32_t)second[i * row] << 16;
    }
    if (k % 2)
        for (int i = 0; i < rows; i++) packed[l * width + i] = source[i * row + 2 * l * column];
}

struct job {
    const struct product *product;
    ssize_t part_rows, part_columns;
    bool failed;
};

/* c[rows][columns] = added + sum. */
static void put_tile(const struct product *p, ssize_t row, ssize_t column, int rows, int columns, const float *sum) {
    for (int i = 0; i < rows; i++) {
        uint16_t *c = (uint16_t *)p->c + (row + i) * p->c_row + column;
        if (p->added) {
            const uint16_t *added = (const uint16_t *)p->added + (row + i) * p->added_row + column * p->added_column;
            for (int j = 0; j < columns; j++)
                c[j] = narrow(float_of_bfloat16(added[j * p->added_column]) + sum[i * COLUMNS + j]);
        } else {
            for (int j = 0; j < columns; j++) c[j] = narrow(sum[i * COLUMNS + j]);
        }
    }
}

/* The rows and columns of c that begin at (row, column), on this thread alone. */
static bool multiply_part(const struct product *p, ssize_t row, ssize_t m, ssize_t column, ssize_t n) {
    ssize_t pairs = (p->k + 1) / 2, left_panel = pairs * TILE_ROWS + LANES;
    ssize_t most = LEFT_BYTES / (4 * left_panel) * TILE_ROWS, height = block_of(m, most < 56 ? 56 : most, TILE_ROWS);
    uint32_t *left = allocate_items(height / TILE_ROWS * left_panel + pairs * COLUMNS + LANES, sizeof *left);
    if (!left) return false;
    uint32_t *right = left + height / TILE_ROWS * left_panel;
    for (ssize_t i = row; i < row + m; i += height) {
        ssize_t rows = i + height < row + m ? height : row + m - i, tiles = (rows + TILE_ROWS - 1) / TILE_ROWS;
        for (ssize_t t = 0; t < tiles; t++)
            pack_pairs(TILE_ROWS, p->k, tile_rows(rows, t), (const uint16_t *)p->a + (i + t * TILE_ROWS) * p->a_row,
                       p->a_row, p->a_column, left + t * left_panel);
        for (ssize_t j = column; j < column + n; j += COLUMNS) {
            int columns = column + n - j < COLUMNS ? (int)(column + n - j) : COLUMNS;
            pack_pairs(COLUMNS, p->k, columns, (const uint16_t *)p->b + j * p->b_column, p->b_column, p->b_row, right);
            for (ssize_t t = 0; t < tiles; t++) {
                float sum[TILE_ROWS * COLUMNS];
                tile_bf16(pairs, left + t * left_panel, right, sum);
                put_tile(p, i + t * TILE_ROWS, j, tile_rows(rows, t), columns, sum);
            }
        }
    }
    release(left);
    return true;
}

static void multiply_parts(void *context, ssize_t begin, ssize_t end) {
    struct job *job = context;
    const struct product *p = job->product;
    ssize_t across = (p->n + job->part_columns - 1) / job->part_columns;
    for (ssize_t part = begin; part < end; part++) {
        ssize_t row = part / across * job->part_rows, column = part % across * job->part_columns;
        if (!multiply_part(p, row, row + job->part_rows < p->m ? job->part_rows : p->m - row, column,
                           column + job->part_columns < p->n ? job->part_columns : p->n - column))
            job->failed = true;
    }
}

/* The dot product of two arrays. */
static __attribute__((target("avx512bf16"))) float dot_bf16(ssize_t k, const uint16_t *a, const uint16_t *b) {
    __m512 sum[4];
    UNROLL for (int i = 0; i < 4; i++) sum[i] = _mm512_setzero_ps();
    ssize_t l = 0;
    for (; l + 8 * LANES <= k; l += 8 * LANES)
        UNROLL for (int i = 0; i < 4; i++)
            sum[i] = _mm512_dpbf16_ps(sum[i], (__m512bh)_mm512_loadu_si512(a + l + i * 2 * LANES),
                                      (__m512bh)_mm512_loadu_si512(b + l + i * 2 * LANES));
    for (; l < k; l += 2 * LANES) {
        __mmask32 there = k - l < 2 * LANES ? (1u << (k - l)) - 1 : ~0u;
        sum[0] = _mm512_dpbf16_ps(sum[0], (__m512bh)_mm512_maskz_loadu_epi16(there, a + l),
                                  (__m512bh)_mm512_maskz_loadu_epi16(there, b + l));
    }
    return _mm512_reduce_add_ps((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

/* Rows begin to end of c, or columns if it has more of those, where both factors are contiguous along k. */
static void multiply_by_dots(void *context, ssize_t begin, ssize_t end) {
    const struct product *p = context;
    bool down = p->m >= p->n;
    for (ssize_t i = down ? begin : 0; i < (down ? end : p->m); i++)
        for (ssize_t j = down ? 0 : begin; j < (down ? p->n : end); j++) {
            float sum = dot_bf16(p->k, (const uint16_t *)p->a + i * p->a_row, (const uint16_t *)p->b + j * p->b_column);
            put_tile(p, i, j, 1, 1, &sum);
        }
}

bool multiply_bf16(const struct product *p) {
    if (p->m == 0 || p->n == 0) return true;
    if (p->a_column == 1 && p->b_row == 1 && (p->m <= 2 || p->n <= 2)) {
        ssize_t longer = p->m >= p->n ? p->m : p->n, shorter = p->m >= p->n ? p->n : p->m;
        parallel_for(longer, grain_for(shorter * p->k), multiply_by_dots, (void *)p);
        return true;
    }
    struct job job = {.product = p};
    split(p, COLUMNS, &job.part_rows, &job.part_columns);
    ssize_t down = (p->m + job.part_rows - 1) / job.part_rows;
    parallel_for(down * ((p->n + job.part_columns - 1) / job.part_columns), 1, multiply_parts, &job);
    return !job.failed;
}

#else
int has_bfloat16_products(void) { return 0; }

bool multiply_bf16(const struct product *p) { return (void)p, false; }
#endif
