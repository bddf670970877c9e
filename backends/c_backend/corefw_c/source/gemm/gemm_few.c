/* Products of half types with a few rows, or as few columns, where both factors are contiguous along k: dot products, four
 * by four. Both are widened to float32, but where the processor has dot products of pairs. */
#include "core/threads.h"
#include "gemm/gemm_packed.h"

#include "gemm/gemm_transpose.h"

#if defined(__AVX512F__)
#include <immintrin.h>

enum {
    SIDE = 4,              /* of a tile */
    FEW = 32,              /* rows at most */
    WIDTH = 32,            /* columns that are written at once */
    LEAST_DEPTH = 256,     /* k for which adding up lanes is cheap */
    FAR_HALVES = 1 << 19,  /* of a matrix that is asked for before it meets the rows */
};

/* sums[i][j] = the dot product of rows i of a and j of b, for `rows` and `columns` of at most SIDE; a missing column
 * repeats the last. If `ask`, the next SIDE rows of b are asked for. */
typedef void tile(ssize_t k, const uint16_t *a, ssize_t a_row, int rows, const uint16_t *b, ssize_t b_row, int columns,
                  bool ask, float (*sums)[WIDTH]);

struct job {
    const struct product *p; /* what is written, */
    struct product few;      /* and a product whose few lines are rows; its transpose if `turned` */
    bool turned, far;
    tile *tile;
    put_sums *put;
};

/* A tile of which STEP elements are loaded and added to sums at once. */
#define DEFINE_TILE(suffix, TARGET, STEP, LINE, LOAD, ADD)                                                             \
    static inline __attribute__((always_inline)) TARGET void any_tile_##suffix(                                        \
        const int rows, ssize_t k, const uint16_t *a, ssize_t a_row, const uint16_t *b, ssize_t b_row, int columns,    \
        bool ask, float (*sums)[WIDTH]) {                                                                              \
        __m512 sum[SIDE][SIDE];                                                                                        \
        const uint16_t *right[SIDE];                                                                                   \
        UNROLL for (int j = 0; j < SIDE; j++) right[j] = b + (j < columns ? j : columns - 1) * b_row;                  \
        UNROLL for (int i = 0; i < rows; i++)                                                                          \
            UNROLL for (int j = 0; j < SIDE; j++) sum[i][j] = _mm512_setzero_ps();                                     \
        for (ssize_t l = 0; l < k; l += STEP) {                                                                        \
            uint32_t there = k - l < STEP ? (1u << (k - l)) - 1 : ~0u;                                                 \
            LINE x[SIDE];                                                                                              \
            for (int j = 0; j < SIDE && ask; j++) __builtin_prefetch(right[j] + SIDE * b_row + l);                     \
            UNROLL for (int i = 0; i < rows; i++) x[i] = LOAD(there, a + i * a_row + l);                               \
            UNROLL for (int j = 0; j < SIDE; j++) {                                                                    \
                LINE y = LOAD(there, right[j] + l);                                                                    \
                UNROLL for (int i = 0; i < rows; i++) sum[i][j] = ADD(sum[i][j], x[i], y);                             \
            }                                                                                                          \
        }                                                                                                              \
        UNROLL for (int i = 0; i < rows; i++) totals_f32((const vector_f32 *)sum[i], sums[i]);                         \
    }                                                                                                                  \
    static TARGET void tile_##suffix(ssize_t k, const uint16_t *a, ssize_t a_row, int rows, const uint16_t *b,         \
                                     ssize_t b_row, int columns, bool ask, float (*sums)[WIDTH]) {                     \
        switch (rows) {                                                                                                \
        case 1: any_tile_##suffix(1, k, a, a_row, b, b_row, columns, ask, sums); return;                               \
        case 2: any_tile_##suffix(2, k, a, a_row, b, b_row, columns, ask, sums); return;                               \
        case 3: any_tile_##suffix(3, k, a, a_row, b, b_row, columns, ask, sums); return;                               \
        default: any_tile_##suffix(4, k, a, a_row, b, b_row, columns, ask, sums);                                      \
        }                                                                                                              \
    }

#define LOAD_HALVES(there, from) _mm256_maskz_loadu_epi16((__mmask16)(there), from)
#define LOAD_BF16(there, from)                                                                                         \
    _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(LOAD_HALVES(there, from)), 16))
#define LOAD_F16(there, from) _mm512_cvtph_ps(LOAD_HALVES(there, from))
#define LOAD_PAIRS(there, from) (__m512bh) _mm512_maskz_loadu_epi16(there, from)
#define ADD_PRODUCT(sum, x, y) ((sum) + (x) * (y))
DEFINE_TILE(bf16, , 16, __m512, LOAD_BF16, ADD_PRODUCT)
DEFINE_TILE(f16, , 16, __m512, LOAD_F16, ADD_PRODUCT)
DEFINE_TILE(pairs, __attribute__((target("avx512bf16"))), 32, __m512bh, LOAD_PAIRS, _mm512_dpbf16_ps)

/* Groups begin to end of WIDTH columns: those of a tile meet all rows. */
static void multiply_groups(void *context, ssize_t begin, ssize_t end) {
    const struct job *job = context;
    const struct product *p = &job->few;
    for (ssize_t group = begin; group < end; group++) {
        ssize_t column = group * WIDTH;
        int columns = p->n - column < WIDTH ? (int)(p->n - column) : WIDTH;
        float sums[FEW][WIDTH], turned[FEW];
        for (int j = 0; j < columns; j += SIDE)
            for (int i = 0; i < p->m; i += SIDE)
                job->tile(p->k, (const uint16_t *)p->a + i * p->a_row, p->a_row,
                          p->m - i < SIDE ? (int)(p->m - i) : SIDE,
                          (const uint16_t *)p->b + (column + j) * p->b_column, p->b_column,
                          columns - j < SIDE ? columns - j : SIDE, job->far && i == 0,
                          (float(*)[WIDTH])(sums[i] + j));
        if (!job->turned) job->put(job->p, 0, column, (int)p->m, columns, sums[0], WIDTH);
        for (int j = 0; j < columns && job->turned; j++) {
            for (int i = 0; i < p->m; i++) turned[i] = sums[i][j];
            job->put(job->p, column + j, 0, 1, (int)p->m, turned, FEW);
        }
    }
}

/* Whether the product was one of a few rows or columns. */
static bool multiply(const struct product *p, tile *tile, put_sums *put) {
    struct job job = {.p = p, .few = *p, .turned = p->n < p->m, .tile = tile, .put = put};
    if (job.turned) job.few = turned(p);
    const struct product *few = &job.few;
    if (few->m > FEW || few->k < LEAST_DEPTH || few->a_column != 1 || few->b_row != 1) return false;
    job.far = few->n * few->k > FAR_HALVES;
    parallel_for((few->n + WIDTH - 1) / WIDTH, grain_for(few->m * few->k * WIDTH / 16), multiply_groups, &job);
    return true;
}

bool multiply_few_bf16(const struct product *p) { return multiply(p, tile_bf16, put_bf16); }

bool multiply_few_bf16_by_pairs(const struct product *p) { return multiply(p, tile_pairs, put_bf16); }

bool multiply_few_f16(const struct product *p) { return multiply(p, tile_f16, put_f16); }

#else
bool multiply_few_bf16(const struct product *p) { return (void)p, false; }

bool multiply_few_bf16_by_pairs(const struct product *p) { return (void)p, false; }

bool multiply_few_f16(const struct product *p) { return (void)p, false; }
#endif
