/* Products of half types with a few rows, or as few columns, where both factors are contiguous along k: dot products, four
 * by four. Both are widened to float32, but where the processor has dot products of pairs. */
#include "core/threads.h"
#include "gemm/gemm_packed.h"

#include <string.h>

#include "gemm/gemm_transpose.h"

#if defined(__AVX512F__)
#include <immintrin.h>

enum {
    LEAST_DEPTH = 256,      /* k for which adding up lanes is cheap */
    FAR_HALVES = 1 << 19,   /* of a matrix that is asked for before it meets the rows */
    ALONE_HALVES = 1 << 22, /* of one beside a single row that rather comes from memory one line after the other */
};

#define LOAD_HALVES(there, from) _mm256_maskz_loadu_epi16((__mmask16)(there), from)
#define LOAD_BF16(there, from)                                                                                         \
    _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(LOAD_HALVES(there, from)), 16))
#define LOAD_F16(there, from) _mm512_cvtph_ps(LOAD_HALVES(there, from))
#define LOAD_PAIRS(there, from) (__m512bh) _mm512_maskz_loadu_epi16((__mmask32)(there), from)
#define ADD_PRODUCT(sum, x, y) ((sum) + (x) * (y))
#define ADD_PAIRS(sum, x, y) (vector_f32) _mm512_dpbf16_ps((__m512)(sum), x, y)

#define OF_FEW(name) name##_bf16
#define ITEM uint16_t
#define SUM float
#define SUMS vector_f32
#define LINE __m512
#define STEP 16
#define WITH_DOT
#define LOAD_LEFT LOAD_BF16
#define LOAD_RIGHT LOAD_BF16
#define ADD ADD_PRODUCT
#define FOLD fold_f32
#include "gemm/gemm_few.inc"

#define OF_FEW(name) name##_f16
#define ITEM uint16_t
#define SUM float
#define SUMS vector_f32
#define LINE __m512
#define STEP 16
#define WITH_DOT
#define LOAD_LEFT LOAD_F16
#define LOAD_RIGHT LOAD_F16
#define ADD ADD_PRODUCT
#define FOLD fold_f32
#include "gemm/gemm_few.inc"

#define OF_FEW(name) name##_pairs
#define ITEM uint16_t
#define SUM float
#define SUMS vector_f32
#define LINE __m512bh
#define STEP 32
#define WITH_DOT __attribute__((target("avx512bf16")))
#define LOAD_LEFT LOAD_PAIRS
#define LOAD_RIGHT LOAD_PAIRS
#define ADD ADD_PAIRS
#define FOLD fold_f32
#include "gemm/gemm_few.inc"

typedef void all_dots(ssize_t m, ssize_t k, const uint16_t *a, ssize_t a_row, const uint16_t *b, ssize_t b_row,
                      int columns, bool ask, float (*sums)[MOST_COLUMNS]);

struct job {
    const struct product *p; /* what is written, */
    struct product few;      /* and a product whose few lines are rows; its transpose if `turned` */
    bool turned, far;
    all_dots *dots;
    put_sums *put;
};

/* Groups begin to end of MOST_COLUMNS columns. */
static void multiply_groups(void *context, ssize_t begin, ssize_t end) {
    const struct job *job = context;
    const struct product *p = &job->few;
    for (ssize_t column = begin * MOST_COLUMNS; column < end * MOST_COLUMNS && column < p->n; column += MOST_COLUMNS) {
        int columns = p->n - column < MOST_COLUMNS ? (int)(p->n - column) : MOST_COLUMNS;
        float sums[FEW_ROWS][MOST_COLUMNS], turned[FEW_ROWS];
        job->dots(p->m, p->k, p->a, p->a_row, (const uint16_t *)p->b + column * p->b_column, p->b_column, columns,
                  job->far, sums);
        if (!job->turned) job->put(job->p, 0, column, (int)p->m, columns, sums[0], MOST_COLUMNS);
        for (int j = 0; j < columns && job->turned; j++) {
            for (int i = 0; i < p->m; i++) turned[i] = sums[i][j];
            job->put(job->p, column + j, 0, 1, (int)p->m, turned, FEW_ROWS);
        }
    }
}

/* Whether the product was one of a few rows or columns. */
static bool multiply(const struct product *p, all_dots *dots, put_sums *put) {
    struct job job = {.p = p, .few = *p, .turned = p->n < p->m, .dots = dots, .put = put};
    if (job.turned) job.few = turned(p);
    const struct product *few = &job.few;
    if (few->m > FEW_ROWS || few->k < LEAST_DEPTH || few->a_column != 1 || few->b_row != 1) return false;
    job.far = few->n * few->k > FAR_HALVES;
    if (few->m == 1 && few->n * few->k > ALONE_HALVES) return false;
    parallel_for((few->n + MOST_COLUMNS - 1) / MOST_COLUMNS, grain_for(few->m * few->k * MOST_COLUMNS / 16),
                 multiply_groups, &job);
    return true;
}

bool multiply_few_bf16(const struct product *p) { return multiply(p, all_dots_bf16, put_bf16); }

bool multiply_few_bf16_by_pairs(const struct product *p) { return multiply(p, all_dots_pairs, put_bf16); }

bool multiply_few_f16(const struct product *p) { return multiply(p, all_dots_f16, put_f16); }

#else
bool multiply_few_bf16(const struct product *p) { return (void)p, false; }

bool multiply_few_bf16_by_pairs(const struct product *p) { return (void)p, false; }

bool multiply_few_f16(const struct product *p) { return (void)p, false; }
#endif
