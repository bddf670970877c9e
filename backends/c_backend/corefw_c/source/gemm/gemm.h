/* Matrix products for other kernels. */
#ifndef COREFW_GEMM_H
#define COREFW_GEMM_H

#include "core/array.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* c = (accumulate ? c : 0) + a b, for a of m by k, b of k by n, c of m by n.
 *
 * Element (i, l) of a lies at a[i * a_row + l * a_column], likewise b; any order works without copies. Element (i, j)
 * of c at c[i * c_row + j]. Parallel, unless called inside a parallel task. Returns false if there is no memory for
 * packing. */
bool gemm_f32(ssize_t m, ssize_t n, ssize_t k, const float *a, ssize_t a_row, ssize_t a_column, const float *b,
              ssize_t b_row, ssize_t b_column, float *c, ssize_t c_row, bool accumulate);
bool gemm_f64(ssize_t m, ssize_t n, ssize_t k, const double *a, ssize_t a_row, ssize_t a_column, const double *b,
              ssize_t b_row, ssize_t b_column, double *c, ssize_t c_row, bool accumulate);

/* c = added + a b; strides in elements. added: rows added_row apart (0 repeats one row), may be c; NULL for zeros. Only
 * products of half types read what comes last: they are alpha a b + beta added. */
struct product {
    ssize_t m, n, k;
    const void *a, *b, *added;
    void *c;
    ssize_t a_row, a_column, b_row, b_column, added_row, c_row, added_column;
    double alpha, beta;
};

/* The product for float, double, and for integers of 32 and 64 bits, signed or not. Parallel and failing as above. */
typedef bool multiplication(const struct product *p);
multiplication multiply_f32, multiply_f64, multiply_u32, multiply_u64;

/* The same for half types, summed in float32 and rounded once: by conversion to float32, by dot products of pairs, by tiles. */
multiplication multiply_bf16, multiply_f16, multiply_bf16_by_pairs, multiply_bf16_by_tiles, multiply_f16_by_tiles;

/* Of these the one for a half type, by what multiplies (kernels.h). */
multiplication *half_multiplication(enum dtype dtype, int products);

/* The product of int8, summed in int32: by pairs of int16, by dot products of four bytes, by tiles. */
multiplication multiply_i8, multiply_i8_by_quads, multiply_i8_by_tiles;

/* The same, of which c is made in float: step scale[j * scale_step] (sum - zero sums[j]) + bias[j]; it is rounded by
 * `narrow` unless that is NULL. */
struct dequantization {
    void (*narrow)(ssize_t n, const void *floats, void *halves);
    float step;
    int32_t zero;
    const float *scale;
    ssize_t scale_step;
    const int32_t *sums;
    const float *bias; /* NULL for zeros */
};
/* `added` is the dequantization */
multiplication multiply_i8_to_floats, multiply_i8_to_floats_by_quads, multiply_i8_to_floats_by_tiles;

#endif
