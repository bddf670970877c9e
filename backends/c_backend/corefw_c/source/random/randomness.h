/* Logarithms and circular functions of the random grids, in float64 without branches, so that loops over them become SIMD
 * code. Polynomials from fdlibm (Sun Microsystems, 1993): each within an ulp. */
#ifndef COREFW_RANDOMNESS_H
#define COREFW_RANDOMNESS_H

#include "core/bits.h"

#include <stdint.h>

/* a b + c, in one rounding where that is fast. */
static inline double fused(double a, double b, double c) {
#if defined(__FP_FAST_FMA)
    return __builtin_fma(a, b, c);
#else
    return a * b + c;
#endif
}

/* An integer below 2^52. */
static inline double of_integer(uint64_t n) { return from_bits_f64(n | 0x4330000000000000) - 0x1p52; }

/* n / 2^53 for n < 2^53, exact. */
static inline double fraction(uint64_t n) {
    return (of_integer(n >> 21) * 0x1p21 + of_integer(n & 0x1FFFFF)) * 0x1p-53;
}

/* The open grid V of float32 from a word, and of float64 from a long word. */
static inline double open_of_word(uint64_t w) { return from_bits_f64(((w & 0xFFFFFFFF) >> 8 | 1) << 28 | 0x3FF0000000000000) - 1; }
static inline double open_of_long_word(uint64_t w) { return fraction(w >> 11 | 1); }

/* ln v for 0 < v < 1, v not subnormal: v = 2^k (1 + f) with 1 + f between the roots of 1/2 and 2. */
static inline double log_of_fraction(double v) {
    const uint64_t root_of_half = 0x3FE6A09E667F3BCD, bias = 1024;
    uint64_t biased = (bits_f64(v) - root_of_half + (bias << 52)) >> 52; /* k + bias */
    double f = from_bits_f64(bits_f64(v) - ((biased - bias) << 52)) - 1, k = of_integer(biased) - (double)bias;
    double s = f / (2 + f), z = s * s, w = z * z, half_square = 0.5 * f * f;
    double even = w * fused(w, fused(w, 1.531383769920937332e-01, 2.222219843214978396e-01), 3.999999999940941908e-01);
    double odd = fused(w, fused(w, fused(w, 1.479819860511658591e-01, 1.818357216161805012e-01), 2.857142874366239149e-01),
                       6.666666666666735130e-01);
    double series = fused(z, odd, even);
    double low = fused(s, half_square + series, k * 1.90821492927058770002e-10);
    return fused(k, 6.93147180369123816490e-01, -((half_square - low) - f));
}

struct direction {
    double cosine, sine;
};

/* The direction `turns` turns from the first axis, |turns| <= 1/8. */
static inline struct direction direction_near_axis(double turns) {
    double x = turns * 6.28318530717958647693, z = x * x, half = 0.5 * z, w = 1 - half;
    double sine = fused(z, fused(z, fused(z, fused(z, 1.58969099521155010221e-10, -2.50507602534068634195e-08),
                                          2.75573137070700676789e-06), -1.98412698298579493134e-04),
                        8.33333333332248946124e-03);
    double cosine = fused(z, fused(z, fused(z, fused(z, fused(z, -1.13596475577881948265e-11, 2.08757232129817482790e-09),
                                                     -2.75573143513906633035e-07), 2.48015872894767294178e-05),
                                   -1.38888888888741095749e-03), 4.16666666666666019037e-02);
    return (struct direction){
        .cosine = w + ((1 - w - half) + z * z * cosine),
        .sine = fused(x * z, fused(z, sine, -1.66666666666666324348e-01), x),
    };
}

/* The direction `turns` turns from the first axis, 0 <= turns <= 1: reduced to the nearest axis, which is exact. */
static inline struct direction direction_of(double turns) {
    const double shift = 0x1.8p52;
    double quarters = 4 * turns + shift;
    uint64_t axis = bits_f64(quarters), odd = -(axis & 1);
    struct direction d = direction_near_axis(turns - 0.25 * (quarters - shift));
    uint64_t difference = (bits_f64(d.cosine) ^ bits_f64(d.sine)) & odd; /* swaps the two beside an odd axis */
    return (struct direction){
        .cosine = from_bits_f64(bits_f64(d.cosine) ^ difference ^ ((axis + 1) & 2) << 62),
        .sine = from_bits_f64(bits_f64(d.sine) ^ difference ^ (axis & 2) << 62),
    };
}

#endif
