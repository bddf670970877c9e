/* Elementary functions without branches, so that loops over them become SIMD code; `exp(x)` and its like take the type of x. */
#ifndef COREFW_MATHEMATICS_H
#define COREFW_MATHEMATICS_H

#include <math.h>

static inline float exp_f32(float x) { return expf(x); }
static inline double exp_f64(double x) { return exp(x); }
static inline float log_f32(float x) { return logf(x); }
static inline double log_f64(double x) { return log(x); }
static inline float log1p_f32(float x) { return log1pf(x); }
static inline double log1p_f64(double x) { return log1p(x); }
static inline float tanh_f32(float x) { return tanhf(x); }
static inline double tanh_f64(double x) { return tanh(x); }
static inline float sigmoid_f32(float x) { return 1 / (1 + exp_f32(-x)); }
static inline double sigmoid_f64(double x) { return 1 / (1 + exp_f64(-x)); }
static inline float sqrt_f32(float x) { return sqrtf(x); }
static inline double sqrt_f64(double x) { return sqrt(x); }

#define OF_TYPE(name, x) _Generic((x), float: name##_f32, double: name##_f64)(x)
#undef exp
#undef log
#undef log1p
#undef tanh
#undef sqrt
#define exp(x) OF_TYPE(exp, x)
#define log(x) OF_TYPE(log, x)
#define log1p(x) OF_TYPE(log1p, x)
#define tanh(x) OF_TYPE(tanh, x)
#define sigmoid(x) OF_TYPE(sigmoid, x)
#define sqrt(x) OF_TYPE(sqrt, x)

#endif
