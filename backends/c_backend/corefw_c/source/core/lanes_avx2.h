/* What lanes.h does with instructions of AVX-512, with those of AVX2. */
#ifndef COREFW_LANES_AVX2_H
#define COREFW_LANES_AVX2_H

#include <immintrin.h>

static inline lanes_f32 greater_f32(lanes_f32 a, lanes_f32 b) { return _mm256_max_ps(a, b); }
static inline lanes_f64 greater_f64(lanes_f64 a, lanes_f64 b) { return _mm256_max_pd(a, b); }

/* The lanes of a vector folded to a number, by `join` of registers of 128 bits. */
#define FOLD_f32(name, join) \
    static inline float name##_f32(lanes_f32 x) { \
        __m128 four = join##ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1)); \
        __m128 two = join##ps(four, _mm_movehl_ps(four, four)); \
        return _mm_cvtss_f32(join##ps(two, _mm_movehdup_ps(two))); \
    }
#define FOLD_f64(name, join) \
    static inline double name##_f64(lanes_f64 x) { \
        __m128d two = join##pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd(x, 1)); \
        return _mm_cvtsd_f64(join##pd(two, _mm_unpackhi_pd(two, two))); \
    }
FOLD_f32(sum_lanes, _mm_add_)
FOLD_f64(sum_lanes, _mm_add_)
FOLD_f32(greatest_lane, _mm_max_)
FOLD_f64(greatest_lane, _mm_max_)
#undef FOLD_f32
#undef FOLD_f64

/* The mask of the first `count` lanes. */
static inline __m256i first_f32(ssize_t count) {
    static const int32_t edge[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_loadu_si256((const void *)(edge + 8 - (count < 8 ? count : 8)));
}

static inline __m256i first_f64(ssize_t count) {
    static const int64_t edge[8] = {-1, -1, -1, -1};
    return _mm256_loadu_si256((const void *)(edge + 4 - (count < 4 ? count : 4)));
}

static inline lanes_f32 load_first_f32(const float *x, ssize_t count, lanes_f32 fill) {
    __m256i mask = first_f32(count);
    return _mm256_blendv_ps(fill, _mm256_maskload_ps(x, mask), _mm256_castsi256_ps(mask));
}

static inline lanes_f64 load_first_f64(const double *x, ssize_t count, lanes_f64 fill) {
    __m256i mask = first_f64(count);
    return _mm256_blendv_pd(fill, _mm256_maskload_pd(x, mask), _mm256_castsi256_pd(mask));
}

/* In parts, for some processors take a masked store to pieces. */
static inline void store_first_f32(float *y, ssize_t count, lanes_f32 value) {
    if (count >= LANES_f32) {
        store_f32(y, value);
        return;
    }
    __m128 part = _mm256_castps256_ps128(value);
    if (count & 4) {
        _mm_storeu_ps(y, part);
        part = _mm256_extractf128_ps(value, 1), y += 4;
    }
    if (count & 2) {
        _mm_storel_pi((void *)y, part);
        part = _mm_movehl_ps(part, part), y += 2;
    }
    if (count & 1) _mm_store_ss(y, part);
}

static inline void store_first_f64(double *y, ssize_t count, lanes_f64 value) {
    if (count >= LANES_f64) {
        store_f64(y, value);
        return;
    }
    __m128d part = _mm256_castpd256_pd128(value);
    if (count & 2) {
        _mm_storeu_pd(y, part);
        part = _mm256_extractf128_pd(value, 1), y += 2;
    }
    if (count & 1) _mm_store_sd(y, part);
}

typedef lane_bits_f32 lane_mask_f32;
typedef lane_bits_f64 lane_mask_f64;
static inline bool any_lane_f32(lane_mask_f32 mask) { return _mm256_movemask_ps((__m256)mask); }
static inline bool any_lane_f64(lane_mask_f64 mask) { return _mm256_movemask_pd((__m256d)mask); }
static inline lane_mask_f32 either_nan_f32(lanes_f32 a, lanes_f32 b) {
    return (lane_mask_f32)_mm256_cmp_ps(a, b, _CMP_UNORD_Q);
}
static inline lane_mask_f64 either_nan_f64(lanes_f64 a, lanes_f64 b) {
    return (lane_mask_f64)_mm256_cmp_pd(a, b, _CMP_UNORD_Q);
}
static inline int lane_of_f32(lanes_f32 x, float value) {
    lane_mask_f32 found = value == value ? x == splat_f32(value) : x != x;
    return __builtin_ctz((unsigned)_mm256_movemask_ps((__m256)found) | 1u << LANES_f32);
}
static inline int lane_of_f64(lanes_f64 x, double value) {
    lane_mask_f64 found = value == value ? x == splat_f64(value) : x != x;
    return __builtin_ctz((unsigned)_mm256_movemask_pd((__m256d)found) | 1u << LANES_f64);
}

#endif
