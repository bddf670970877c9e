/* Copies between arrays of one shape whose elements lie at any strides, and the walk over them that other kernels
 * share. */
#ifndef COREFW_STRIDED_H
#define COREFW_STRIDED_H

#include "core/array.h"

#include <string.h>

enum { MAX_LOOPS = 2 * MAX_DIMS }; /* a repetition splits each dimension in two */

/* Elements by their size, wherever they lie. */
typedef uint8_t element_1 __attribute__((may_alias));
typedef uint16_t element_2 __attribute__((aligned(1), may_alias));
typedef uint32_t element_4 __attribute__((aligned(1), may_alias));
typedef uint64_t element_8 __attribute__((aligned(1), may_alias));
typedef struct __attribute__((packed, may_alias)) {
    uint64_t low, high;
} element_16;

/* Write n elements of `size` bytes (1, 2, 4, 8 or 16) from source to target; strides are in bytes, 0 repeats an element
 * and negative ones go back. The arrays do not overlap. Parallel; contiguous parts move as blocks, transposed ones as
 * tiles. */
void copy_strided(int ndim, const ssize_t *shape, char *target, const ssize_t *target_strides, const char *source,
                  const ssize_t *source_strides, size_t size);

/* The same with conversion between element types; false if there is none between these. */
bool convert_strided(int ndim, const ssize_t *shape, char *target, const ssize_t *target_strides, enum dtype to,
                     const char *source, const ssize_t *source_strides, enum dtype from);

/* memcpy, without the price of a call where that would be the most of it. */
static inline void copy_bytes(size_t n, char *target, const char *source) {
    enum { BLOCK = 64, LONG = 1024, HALF = BLOCK / 2, QUARTER = BLOCK / 4 };
    if (n > LONG || n < QUARTER) memcpy(target, source, n);
    else if (n < HALF) {
        memcpy(target, source, QUARTER);
        memcpy(target + n - QUARTER, source + n - QUARTER, QUARTER);
    } else if (n < BLOCK) {
        memcpy(target, source, HALF);
        memcpy(target + n - HALF, source + n - HALF, HALF);
    } else {
        for (size_t i = 0; i < n - BLOCK; i += BLOCK) memcpy(target + i, source + i, BLOCK);
        memcpy(target + n - BLOCK, source + n - BLOCK, BLOCK);
    }
}

/* n elements of one row, by the calling thread. */
void copy_row(ssize_t n, char *target, ssize_t target_step, const char *source, ssize_t source_step, size_t size);

/* Whether the parts of memory that two arrays reach over have bytes in common. */
bool overlap(array a, array b);

/* The same of elements of `size` bytes at any strides. */
bool extents_overlap(int ndim, const ssize_t *shape, const char *data, const ssize_t *strides, size_t size,
                     int other_ndim, const ssize_t *other_shape, const char *other, const ssize_t *other_strides,
                     size_t other_size);

/* -- the walk -- */
/* A plane of `rows` times `n` elements: neighbours in a row are `step` bytes apart, rows `row` bytes. */
struct plane {
    ssize_t rows, n;
    char *target;
    ssize_t target_row, target_step;
    const char *source;
    ssize_t source_row, source_step;
};
typedef void (*plane_task)(const void *context, const struct plane *plane);

/* Loops over two arrays, the outermost first: in the order of the target's memory, as few and as long as possible. */
struct walk {
    int ndim;
    ssize_t shape[MAX_LOOPS], target_strides[MAX_LOOPS], source_strides[MAX_LOOPS];
    char *target;
    const char *source;
};

struct walk walk_over(int ndim, const ssize_t *shape, char *target, const ssize_t *target_strides, const char *source,
                      const ssize_t *source_strides);

/* Give all planes of the two innermost loops, or parts of them, to `task`; `cost` is that of one element, in 1/16
 * steps. */
void walk_planes(const struct walk *walk, plane_task task, const void *context, ssize_t cost);

#endif
