/* The logarithm of the gamma function for positive floats, computed in double without branches, so that loops over it
 * become SIMD code; `log_gamma(x)` takes the type of x, and of a double is the function of special_functions.h. */
#ifndef COREFW_LOG_GAMMA_H
#define COREFW_LOG_GAMMA_H

#include "core/mathematics.h"

/* The gamma function at x is that at x + 8 over a product; there Stirling's series holds, DLMF 5.11.1. */
static inline __attribute__((always_inline)) float log_gamma_f32(float x) {
    double at = x, product = at * (at + 1) * (at + 2) * (at + 3) * (at + 4) * (at + 5) * (at + 6) * (at + 7);
    at += 8;
    double y = 1 / at, z = y * y;
    double series = y * (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z * (1.0 / 1680 - z * (1.0 / 1188)))));
    double result = (at - 0.5) * log(at) - at + 0.91893853320467274178 + series - log(product);
    return (float)((x == 1) | (x == 2) ? 0 : result);
}

/* Numbers that are not positive, or too large, and those so near to a root that the sum loses too many digits. */
static inline __attribute__((always_inline)) int beyond_log_gamma_f32(float x) {
    return (x <= 0) | (x >= 1e30f) | (x != x) | ((fabs(x - 1) < 1e-6f) & (x != 1)) | ((fabs(x - 2) < 1e-6f) & (x != 2));
}
static inline __attribute__((always_inline)) int beyond_log_gamma_f64(double x) {
    (void)x;
    return 1;
}

#define exact_log_gamma(x) (log_gamma)(x)
#define log_gamma(x) _Generic((x), float: log_gamma_f32, double: (log_gamma))(x)
#define beyond_log_gamma(x) OF_TYPE(beyond_log_gamma, x)

#endif
