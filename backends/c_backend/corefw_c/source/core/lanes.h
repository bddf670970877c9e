/* Vectors of one register, lanes_f32 and lanes_f64: for sums, maxima, and rows that do not fill a register. */
#ifndef COREFW_LANES_H
#define COREFW_LANES_H

#include "core/mathematics.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

/* For functions of which each caller fixes some arguments: registers instead of arrays depend on it. */
#define ALWAYS_INLINE __attribute__((always_inline))

#if defined(__AVX512F__)
enum { LANES_BYTES = 64 };
#elif defined(__AVX2__)
enum { LANES_BYTES = 32 };
#else
enum { LANES_BYTES = 16 };
#endif

/* Integers of the size of a real number. */
typedef int32_t integer_f32;
typedef int64_t integer_f64;

#define TEMPLATE "core/lanes.inc"
#include "core/each_real.h"

/* greater: lane by lane a where it is greater, else b; a NaN in a is passed over.
 * greatest_lane, sum_lanes: over the lanes of one vector.
 * load_first: the first `count` elements at x, which may be all that may be read, and `fill` beside them.
 * store_first: only the first `count` elements of a value.
 * either_nan: the mask of the lanes where a or b is NaN; any_lane: whether there is one in a mask.
 * lane_of: the first lane that holds a value, which may be NaN; the number of lanes if none does. */
#if defined(__AVX512F__)
static inline lanes_f32 greater_f32(lanes_f32 a, lanes_f32 b) { return _mm512_max_ps(a, b); }
static inline lanes_f64 greater_f64(lanes_f64 a, lanes_f64 b) { return _mm512_max_pd(a, b); }
static inline float greatest_lane_f32(lanes_f32 x) { return _mm512_reduce_max_ps(x); }
static inline double greatest_lane_f64(lanes_f64 x) { return _mm512_reduce_max_pd(x); }
static inline float sum_lanes_f32(lanes_f32 x) { return _mm512_reduce_add_ps(x); }
static inline double sum_lanes_f64(lanes_f64 x) { return _mm512_reduce_add_pd(x); }
static inline lanes_f32 load_first_f32(const float *x, ssize_t count, lanes_f32 fill) {
    return _mm512_mask_loadu_ps(fill, count < LANES_f32 ? (__mmask16)((1u << count) - 1) : 0xffff, x);
}
static inline lanes_f64 load_first_f64(const double *x, ssize_t count, lanes_f64 fill) {
    return _mm512_mask_loadu_pd(fill, count < LANES_f64 ? (__mmask8)((1u << count) - 1) : 0xff, x);
}
static inline void store_first_f32(float *y, ssize_t count, lanes_f32 value) {
    _mm512_mask_storeu_ps(y, count < LANES_f32 ? (__mmask16)((1u << count) - 1) : 0xffff, value);
}
static inline void store_first_f64(double *y, ssize_t count, lanes_f64 value) {
    _mm512_mask_storeu_pd(y, count < LANES_f64 ? (__mmask8)((1u << count) - 1) : 0xff, value);
}
typedef __mmask16 lane_mask_f32;
typedef __mmask8 lane_mask_f64;
static inline bool any_lane_f32(lane_mask_f32 mask) { return mask; }
static inline bool any_lane_f64(lane_mask_f64 mask) { return mask; }
static inline lane_mask_f32 either_nan_f32(lanes_f32 a, lanes_f32 b) { return _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q); }
static inline lane_mask_f64 either_nan_f64(lanes_f64 a, lanes_f64 b) { return _mm512_cmp_pd_mask(a, b, _CMP_UNORD_Q); }
static inline int lane_of_f32(lanes_f32 x, float value) {
    lane_mask_f32 equal = _mm512_cmp_ps_mask(x, splat_f32(value), _CMP_EQ_OQ);
    return __builtin_ctz((value == value ? equal : either_nan_f32(x, x)) | 1u << LANES_f32);
}
static inline int lane_of_f64(lanes_f64 x, double value) {
    lane_mask_f64 equal = _mm512_cmp_pd_mask(x, splat_f64(value), _CMP_EQ_OQ);
    return __builtin_ctz((value == value ? equal : either_nan_f64(x, x)) | 1u << LANES_f64);
}
#elif defined(__AVX2__)
#include "core/lanes_avx2.h"
#else
#define TEMPLATE "core/lanes_partial.inc"
#include "core/each_real.h"
#endif

#endif
