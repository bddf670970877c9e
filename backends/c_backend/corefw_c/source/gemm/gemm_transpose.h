/* Transposition of square blocks in registers, and sums over lanes. */
#ifndef COREFW_GEMM_TRANSPOSE_H
#define COREFW_GEMM_TRANSPOSE_H

#include "gemm/gemm_tile.h"

/* The elements of the lower (upper) halves of two vectors, alternating. */
#define LOWER_2(a, b) __builtin_shufflevector(a, b, 0, 2)
#define UPPER_2(a, b) __builtin_shufflevector(a, b, 1, 3)
#define LOWER_4(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define UPPER_4(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define LOWER_8(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define UPPER_8(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define LOWER_16(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define UPPER_16(a, b) __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)

/* transpose: a matrix of `lanes` vectors, log2(lanes) times: each pair of rows half the matrix apart becomes two
 * neighbours that alternate their elements.
 *
 * transpose_square: the same from memory to memory, rows of x and y `x_row` and `y_row` apart.
 *
 * totals: those of four vectors. A fold adds the halves of two vectors, alternating, so that two folds leave lanes/4
 * terms of each vector, and the others join the halves of these. */
#define DEFINE_TRANSPOSE(type, suffix, lanes)                                                                          \
    static inline __attribute__((always_inline)) void transpose_##suffix(vector_##suffix *x) {                         \
        UNROLL for (int round = 1; round < lanes; round *= 2) {                                                        \
            vector_##suffix y[lanes];                                                                                  \
            UNROLL for (int i = 0; i < lanes / 2; i++) {                                                               \
                y[2 * i] = LOWER_##lanes(x[i], x[i + lanes / 2]);                                                      \
                y[2 * i + 1] = UPPER_##lanes(x[i], x[i + lanes / 2]);                                                  \
            }                                                                                                          \
            UNROLL for (int i = 0; i < lanes; i++) x[i] = y[i];                                                        \
        }                                                                                                              \
    }                                                                                                                  \
    static inline void transpose_square_##suffix(const type *restrict x, ssize_t x_row, type *restrict y, ssize_t y_row) {\
        vector_##suffix rows[lanes];                                                                                  \
        UNROLL for (int i = 0; i < lanes; i++) rows[i] = *(const unaligned_vector_##suffix *)(x + i * x_row);         \
        transpose_##suffix(rows);                                                                                     \
        UNROLL for (int i = 0; i < lanes; i++) *(unaligned_vector_##suffix *)(y + i * y_row) = rows[i];               \
    }                                                                                                                 \
    static inline vector_##suffix fold_##suffix(vector_##suffix x, vector_##suffix y) {                                \
        return LOWER_##lanes(x, y) + UPPER_##lanes(x, y);                                                              \
    }                                                                                                                  \
    static inline void totals_##suffix(const vector_##suffix *x, type *total) {                                        \
        vector_##suffix even = fold_##suffix(x[0], x[2]), odd = fold_##suffix(x[1], x[3]);                             \
        if (lanes == 2) {                                                                                              \
            total[0] = even[0], total[1] = odd[0], total[2] = even[1], total[3] = odd[1];                              \
            return;                                                                                                    \
        }                                                                                                              \
        vector_##suffix sum = fold_##suffix(even, odd);                                                                \
        UNROLL for (int round = 4; round < lanes; round *= 2) sum = fold_##suffix(sum, sum);                           \
        UNROLL for (int i = 0; i < 4; i++) total[i] = sum[i * lanes / 4];                                              \
    }
#if VECTOR_BYTES == 64
DEFINE_TRANSPOSE(float, f32, 16)
DEFINE_TRANSPOSE(double, f64, 8)
DEFINE_TRANSPOSE(uint32_t, u32, 16)
DEFINE_TRANSPOSE(uint64_t, u64, 8)
#elif VECTOR_BYTES == 32
DEFINE_TRANSPOSE(float, f32, 8)
DEFINE_TRANSPOSE(double, f64, 4)
DEFINE_TRANSPOSE(uint32_t, u32, 8)
DEFINE_TRANSPOSE(uint64_t, u64, 4)
#else
DEFINE_TRANSPOSE(float, f32, 4)
DEFINE_TRANSPOSE(double, f64, 2)
DEFINE_TRANSPOSE(uint32_t, u32, 4)
DEFINE_TRANSPOSE(uint64_t, u64, 2)
#endif

#endif
