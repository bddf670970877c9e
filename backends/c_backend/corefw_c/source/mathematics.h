/* Elementary functions without branches, so that loops over them become SIMD code; `exp(x)` and its like take the type of x.
 *
 * Errors stay below 2 units in the last place, special values are those of C's library (tests/test_expressions.py). sin, cos
 * and tan hold for |x| <= LARGEST_ANGLE; whoever may meet larger ones takes C's own there. Coefficients are minimax fits by
 * Remez's algorithm, but where a comment names their origin. */
#ifndef COREFW_MATHEMATICS_H
#define COREFW_MATHEMATICS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "mathematics_f64.h"

#include "mathematics_f32.h"

#define OF_TYPE(name, x) _Generic((x), float: name##_f32, double: name##_f64)(x)
#define OF_TYPES(name, x, y) _Generic((x) + (y), float: name##_f32, double: name##_f64)(x, y)

#define LARGEST_ANGLE 131072
#undef exp
#undef sqrt
#undef log
#define acos(x) OF_TYPE(acos, x)
#define acosh(x) OF_TYPE(acosh, x)
#define asin(x) OF_TYPE(asin, x)
#define asinh(x) OF_TYPE(asinh, x)
#define atan(x) OF_TYPE(atan, x)
#define atan2(y, x) OF_TYPES(atan2, y, x)
#define atanh(x) OF_TYPE(atanh, x)
#define cos(x) OF_TYPE(cos, x)
#define cosh(x) OF_TYPE(cosh, x)
#define erf(x) OF_TYPE(erf, x)
#define erfc(x) OF_TYPE(erfc, x)
#define erfinv(x) OF_TYPE(erfinv, x)
#define exp(x) OF_TYPE(exp, x)
#define exp2(x) OF_TYPE(exp2, x)
#define expm1(x) OF_TYPE(expm1, x)
#define hypot(x, y) OF_TYPES(hypot, x, y)
#define log(x) OF_TYPE(log, x)
#define log10(x) OF_TYPE(log10, x)
#define log1p(x) OF_TYPE(log1p, x)
#define log2(x) OF_TYPE(log2, x)
#define pow(x, y) OF_TYPES(pow, x, y)
#define rsqrt(x) OF_TYPE(rsqrt, x)
#define sigmoid(x) OF_TYPE(sigmoid, x)
#define sin(x) OF_TYPE(sin, x)
#define sinh(x) OF_TYPE(sinh, x)
#define sqrt(x) OF_TYPE(sqrt, x)
#define tan(x) OF_TYPE(tan, x)
#define tanh(x) OF_TYPE(tanh, x)

#endif
