/* Elementwise choice between two arrays: one loop per size of element. */
#include "elementwise/elementwise.h"

/* Elements are moved as integers, which need not be aligned beyond what NumPy does. */
typedef uint32_t __attribute__((may_alias)) four_bytes;
typedef uint64_t __attribute__((may_alias, aligned(4))) eight_bytes;
typedef struct { eight_bytes low, high; } sixteen_bytes;

#define CHOOSE(size, T) \
    static void span_choose_##size(intptr_t n, char *const *in, char *out) { \
        const bool8 *condition = (const bool8 *)in[0]; \
        const T *a = (const T *)in[1], *b = (const T *)in[2]; \
        T *results = (T *)out; \
        INDEPENDENT for (intptr_t i = 0; i < n; i++) { \
            T x = a[i], y = b[i]; \
            results[i] = condition[i] ? x : y; \
        } \
    }

CHOOSE(1, uint8_t)
CHOOSE(2, uint16_t)
CHOOSE(4, four_bytes)
CHOOSE(8, eight_bytes)
CHOOSE(16, sixteen_bytes)

#define ROW(dtype, size) {"choose", 3, 0, 1, {BOOL, dtype, dtype, 0, 0, dtype}, span_choose_##size, NULL, NULL, 1, NULL, NULL}

const struct elementwise_loop loops_choose[] = {
    ROW(BOOL, 1), ROW(INT8, 1), ROW(UINT8, 1), ROW(INT16, 2), ROW(UINT16, 2), ROW(FLOAT16, 2), ROW(BFLOAT16, 2),
    ROW(INT32, 4), ROW(UINT32, 4), ROW(FLOAT32, 4), ROW(INT64, 8), ROW(UINT64, 8), ROW(FLOAT64, 8), ROW(COMPLEX64, 8),
    ROW(COMPLEX128, 16), {NULL, 0, 0, 0, {0}, NULL, NULL, NULL, 0, NULL, NULL},
};
