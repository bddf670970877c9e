/* Products of a few rows, or as few columns: the larger factor is read once, as it lies, at the memory's speed. */
#include "core/memory.h"
#include "core/threads.h"
#include "gemm/gemm_packed.h"

#include <string.h>

#include "core/storage.h"
#include "gemm/gemm_transpose.h"

enum {
    FAR_BYTES = 1 << 20,  /* of a matrix that is asked for before it meets more than two rows */
    LINE_STEPS = 12,      /* what a line of 64 bytes costs, in elementary steps, beside four for each row */
    DEEP = 8,             /* contiguous rows that are read at once, */
    SUMS_BYTES = 1 << 15, /* of sums that grow by them, */
    LEAST_GROUPS = 8,     /* and groups of their columns at least, which lie together, for a thread */
};

/* Write sums with what is added. */
#define REAL_SUMS(type, suffix)                                                                                        \
    static void put_##suffix(const struct product *p, ssize_t row, ssize_t column, int rows, int columns,              \
                             const type *sums, int sums_row) {                                                         \
        for (int i = 0; i < rows; i++, sums += sums_row) {                                                             \
            type *c = (type *)p->c + (row + i) * p->c_row + column;                                                    \
            const type *added = (const type *)p->added + (row + i) * p->added_row + column;                            \
            for (int j = 0; j < columns; j++) c[j] = p->added ? added[j] + sums[j] : sums[j];                          \
        }                                                                                                              \
    }
REAL_SUMS(float, f32)
REAL_SUMS(double, f64)
REAL_SUMS(uint32_t, u32)
REAL_SUMS(uint64_t, u64)

#define TEMPLATE "gemm/gemm_few.inc"
#include "core/each_storage.h"

#define ITEM REAL
#define OF_ITEM OF_REAL
#define LOAD(from) (*(const OF_REAL(unaligned_vector) *)(from))
#define WIDE(item) (item)
#define TEMPLATE "gemm/gemm_few.inc"
#include "gemm/gemm_integers.h"
#undef ITEM
#undef OF_ITEM
#undef LOAD
#undef WIDE

#if defined(__AVX512F__)
/* Dot products of pairs of bfloat16, where the processor has them. */
#define LOAD_PAIRS(from) ((__m512bh)_mm512_loadu_si512(from))
#define LOAD_PAIRS_PART(from, n) ((__m512bh)_mm512_maskz_loadu_epi16((__mmask32)((1u << (n)) - 1), from))
#define ADD_PAIRS(sum, x, y) ((vector_f32)_mm512_dpbf16_ps((__m512)(sum), x, y))

#define ITEM uint16_t
#define OF_DOTS(name) name##_pairs
#define SUM float
#define SUMS vector_f32
#define LINE __m512bh
#define STEP 32
#define WITH_DOT __attribute__((target("avx512bf16")))
#define LOAD_LEFT LOAD_PAIRS
#define LOAD_RIGHT LOAD_PAIRS
#define LOAD_PART LOAD_PAIRS_PART
#define ADD ADD_PAIRS
#define FOLD fold_f32
#include "gemm/gemm_dots.inc"
#undef ITEM

bool multiply_few_bf16_by_pairs(const struct product *p, struct few most) {
    return multiply_with_bf16(p, most, all_dots_pairs);
}
#else
bool multiply_few_bf16_by_pairs(const struct product *p, struct few most) {
    return multiply_few_bf16(p, most);
}
#endif
