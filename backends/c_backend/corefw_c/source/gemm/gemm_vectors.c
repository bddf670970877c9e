/* Products of half types with one or two rows, or as few columns: each number of the other factor is read once, where it is.
 *
 * There are two ways, by what is contiguous: dot products along k, and sums of rows of the larger factor. Both widen to
 * float32, but where the processor has dot products of pairs. */
#include "core/halves.h"
#include "core/threads.h"
#include "gemm/gemm_packed.h"

#include "gemm/gemm_transpose.h"

#if defined(__AVX512F__)
#include <immintrin.h>

enum { LANES = 16, FEW = 2, VECTORS = 8, WIDTH = VECTORS * LANES, PUT_WIDTH = 32, AHEAD = 16 };

typedef float dot(ssize_t k, const uint16_t *a, const uint16_t *b);

/* A product whose few lines are rows; it is the transpose of the result if `turned`. */
struct job {
    const struct product *p;
    struct product few;
    bool turned, brain;
    dot *dot;
};

#define ALWAYS static inline __attribute__((always_inline))

ALWAYS __m512 widened(const bool brain, __mmask16 there, const uint16_t *halves) {
    __m256i x = _mm256_maskz_loadu_epi16(there, halves);
    return brain ? _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16)) : _mm512_cvtph_ps(x);
}

/* The first n of sixteen. */
ALWAYS __mmask16 first_of(ssize_t n) { return n >= LANES ? 0xFFFF : n > 0 ? (__mmask16)((1u << n) - 1) : 0; }

/* Write sums of a row of the few, from `column` on. */
static void put_row(const struct job *job, ssize_t row, ssize_t column, ssize_t columns, const float *sums) {
    put_sums *put = job->brain ? put_bf16 : put_f16;
    ssize_t step = job->turned ? 1 : PUT_WIDTH;
    for (ssize_t j = 0; j < columns; j += step) {
        ssize_t i = job->turned ? column + j : row, to = job->turned ? row : column + j;
        put(job->p, i, to, 1, (int)(columns - j < step ? columns - j : step), sums + j, PUT_WIDTH);
    }
}

/* -- dot products -- */
ALWAYS float dot_widened(const bool brain, ssize_t k, const uint16_t *a, const uint16_t *b) {
    __m512 sum[4] = {0};
    ssize_t l = 0;
    for (; l + 4 * LANES <= k; l += 4 * LANES)
        UNROLL for (int i = 0; i < 4; i++)
            sum[i] += widened(brain, 0xFFFF, a + l + i * LANES) * widened(brain, 0xFFFF, b + l + i * LANES);
    for (; l < k; l += LANES) sum[0] += widened(brain, first_of(k - l), a + l) * widened(brain, first_of(k - l), b + l);
    return _mm512_reduce_add_ps((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

static float dot_bf16(ssize_t k, const uint16_t *a, const uint16_t *b) { return dot_widened(true, k, a, b); }
static float dot_f16(ssize_t k, const uint16_t *a, const uint16_t *b) { return dot_widened(false, k, a, b); }

static __attribute__((target("avx512bf16"))) float dot_of_pairs(ssize_t k, const uint16_t *a, const uint16_t *b) {
    __m512 sum[4] = {0};
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

/* Columns begin to end, of both factors contiguous along k. */
static void multiply_by_dots(void *context, ssize_t begin, ssize_t end) {
    const struct job *job = context;
    const struct product *p = &job->few;
    for (ssize_t j = begin; j < end; j++)
        for (ssize_t i = 0; i < p->m; i++) {
            const uint16_t *a = (const uint16_t *)p->a + i * p->a_row, *b = (const uint16_t *)p->b + j * p->b_column;
            float sum = job->dot(p->k, a, b);
            put_row(job, i, j, 1, &sum);
        }
}

/* -- sums of rows -- */
/* `columns` columns, at most WIDTH, of rows of b, for `rows` rows of a. */
ALWAYS void multiply_columns(const struct job *job, const bool brain, const int rows, ssize_t column, ssize_t columns) {
    const struct product *p = &job->few;
    const uint16_t *a = p->a, *b = (const uint16_t *)p->b + column;
    __m512 sums[FEW][VECTORS] = {0};
    __mmask16 there[VECTORS];
    UNROLL for (int v = 0; v < VECTORS; v++) there[v] = first_of(columns - v * LANES);
    for (ssize_t l = 0; l < p->k; l++, a += p->a_column, b += p->b_row) {
        float x[FEW];
        UNROLL for (int i = 0; i < rows; i++) x[i] = (brain ? float_of_bfloat16 : float_of_float16)(a[i * p->a_row]);
        UNROLL for (int v = 0; v < VECTORS; v += 2) __builtin_prefetch(b + AHEAD * p->b_row + v * LANES);
        UNROLL for (int v = 0; v < VECTORS; v++) {
            __m512 y = widened(brain, there[v], b + v * LANES);
            UNROLL for (int i = 0; i < rows; i++) sums[i][v] += x[i] * y;
        }
    }
    UNROLL for (int i = 0; i < rows; i++) put_row(job, i, column, columns, (const float *)sums[i]);
}

/* Stretches begin to end of WIDTH columns. */
static void multiply_by_rows(void *context, ssize_t begin, ssize_t end) {
    const struct job *job = context;
    for (ssize_t i = begin; i < end; i++) {
        ssize_t column = i * WIDTH, columns = job->few.n - column < WIDTH ? job->few.n - column : WIDTH;
        if (job->brain && job->few.m == 1) multiply_columns(job, true, 1, column, columns);
        else if (job->brain) multiply_columns(job, true, 2, column, columns);
        else if (job->few.m == 1) multiply_columns(job, false, 1, column, columns);
        else multiply_columns(job, false, 2, column, columns);
    }
}

/* Whether the product was one of vectors. */
static bool multiply(const struct product *p, bool brain, dot *dot) {
    struct job job = {.p = p, .few = *p, .turned = p->n < p->m, .brain = brain, .dot = dot};
    if (job.turned) job.few = turned(p);
    const struct product *few = &job.few;
    if (few->m > FEW || few->k == 0) return false;
    if (few->a_column == 1 && few->b_row == 1)
        parallel_for(few->n, grain_for(few->m * few->k), multiply_by_dots, &job);
    else if (few->b_column == 1)
        parallel_for((few->n + WIDTH - 1) / WIDTH, grain_for(few->m * few->k * WIDTH / LANES), multiply_by_rows, &job);
    else return false;
    return true;
}

bool multiply_vectors_bf16(const struct product *p) { return multiply(p, true, dot_bf16); }

bool multiply_vectors_bf16_by_pairs(const struct product *p) { return multiply(p, true, dot_of_pairs); }

bool multiply_vectors_f16(const struct product *p) { return multiply(p, false, dot_f16); }

#else
bool multiply_vectors_bf16(const struct product *p) { return (void)p, false; }

bool multiply_vectors_bf16_by_pairs(const struct product *p) { return (void)p, false; }

bool multiply_vectors_f16(const struct product *p) { return (void)p, false; }
#endif
