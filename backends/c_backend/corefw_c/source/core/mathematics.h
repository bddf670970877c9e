/* Elementary functions without branches, so that loops over them become SIMD code; `exp(x)` and its like take the type
 * of x.
 *
 * Errors stay below 2.5 units in the last place of float and 3 of double; special values are
 * those of C's library (tests/test_expressions.py). sin, cos and tan hold for |x| <= LARGEST_ANGLE, fmod for
 * |x / y| < MANY_TIMES; whoever may meet others takes C's own functions there, exact_sin and so on. Coefficients are
 * minimax fits by Remez's algorithm, but where a comment names their origin. */
#ifndef COREFW_MATHEMATICS_H
#define COREFW_MATHEMATICS_H

#include "core/bits.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__clang__)
#pragma clang diagnostic ignored "-Wbitwise-conditional-parentheses" /* `a & b ? x : y` is all over these functions */
#pragma clang diagnostic ignored "-Wbitwise-instead-of-logical"
#endif
#define INLINE static inline __attribute__((always_inline)) /* a call would keep a loop from becoming SIMD code */
#include "core/mathematics_f64.h"

#include "core/mathematics_f32.h"
#undef INLINE

#define OF_TYPE(name, x) _Generic((x), float: name##_f32, double: name##_f64)(x)
#define OF_TYPES(name, x, y) _Generic((x) + (y), float: name##_f32, double: name##_f64)(x, y)

#define LARGEST_ANGLE 131072
#define MANY_TIMES 1048576
#define exact_cos(x) _Generic((x), float: cosf, double: (cos))(x)
#define exact_fmod(x, y) _Generic((x), float: fmodf, double: (fmod))(x, y)
#define exact_sin(x) _Generic((x), float: sinf, double: (sin))(x)
#define exact_tan(x) _Generic((x), float: tanf, double: (tan))(x)
#define acos(x) OF_TYPE(acos, x)
#define acosh(x) OF_TYPE(acosh, x)
#define asin(x) OF_TYPE(asin, x)
#define asinh(x) OF_TYPE(asinh, x)
#define atan(x) OF_TYPE(atan, x)
#define atan2(y, x) OF_TYPES(atan2, y, x)
#define atanh(x) OF_TYPE(atanh, x)
#define ceil(x) _Generic((x), float: __builtin_ceilf, double: __builtin_ceil)(x)
#define copysign(x, sign) OF_TYPES(copysign, x, sign)
#define cos(x) OF_TYPE(cos, x)
#define cosh(x) OF_TYPE(cosh, x)
#define erf(x) OF_TYPE(erf, x)
#define erfc(x) OF_TYPE(erfc, x)
#define erfinv(x) OF_TYPE(erfinv, x)
#define exp(x) OF_TYPE(exp, x)
#define exp2(x) OF_TYPE(exp2, x)
#define expm1(x) OF_TYPE(expm1, x)
#define fabs(x) OF_TYPE(abs, x)
#define floor(x) _Generic((x), float: __builtin_floorf, double: __builtin_floor)(x)
#define fmod(x, y) OF_TYPES(fmod, x, y)
#define hypot(x, y) OF_TYPES(hypot, x, y)
#define log(x) OF_TYPE(log, x)
#define log10(x) OF_TYPE(log10, x)
#define log1p(x) OF_TYPE(log1p, x)
#define log2(x) OF_TYPE(log2, x)
#define normcdf(x) OF_TYPE(normcdf, x)
#define pow(x, y) OF_TYPES(pow, x, y)
#define rint(x) _Generic((x), float: __builtin_rintf, double: __builtin_rint)(x)
#define rsqrt(x) OF_TYPE(rsqrt, x)
#define sigmoid(x) OF_TYPE(sigmoid, x)
#define sin(x) OF_TYPE(sin, x)
#define sinh(x) OF_TYPE(sinh, x)
#define sqrt(x) OF_TYPE(sqrt, x)
#define tan(x) OF_TYPE(tan, x)
#define tanh(x) OF_TYPE(tanh, x)
#define trunc(x) _Generic((x), float: __builtin_truncf, double: __builtin_trunc)(x)

#endif
