/* Sums and products of sizes that a caller chose: one that does not fit is the largest size, for which there is never
 * memory. All operands are >= 0. */
#ifndef COREFW_SIZES_H
#define COREFW_SIZES_H

#include <limits.h>
#include <sys/types.h>

static inline ssize_t size_plus(ssize_t a, ssize_t b) {
    ssize_t sum;
    return __builtin_add_overflow(a, b, &sum) ? SSIZE_MAX : sum;
}

static inline ssize_t size_times(ssize_t a, ssize_t b) {
    ssize_t product;
    return __builtin_mul_overflow(a, b, &product) ? SSIZE_MAX : product;
}

/* -- windows -- */
/* Padded sizes and extents of windows beyond this are refused: sums of a few of them always fit. */
static const ssize_t LARGEST_EXTENT = (ssize_t)1 << 60;

/* The places over which the elements of a window reach. */
static inline ssize_t window_extent(ssize_t kernel, ssize_t dilation) {
    return size_plus(size_times(dilation, kernel - 1), 1);
}

static inline ssize_t padded_size(ssize_t size, ssize_t padding) { return size_plus(size, size_times(2, padding)); }

#endif
