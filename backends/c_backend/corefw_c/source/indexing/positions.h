/* Index arrays as positions in memory. */
#ifndef COREFW_POSITIONS_H
#define COREFW_POSITIONS_H

#include "core/array.h"

/* Position p lies at[p] * step bytes after the first element. */
struct positions {
    ssize_t count, step;
    int64_t *at; /* to be released */
};

/* The shape that index arrays (int32 or int64) have together; false if they do not broadcast. */
bool common_shape(const uintptr_t *indices, int count, int *ndim, ssize_t *shape);

/* Where index arrays point together, the i-th in dimension dim + i of x, after a check of their range: from 0, or also
 * back from the end if `from_end`. What OK is returned for is to be released. */
enum status find_positions(array x, int dim, const uintptr_t *indices, int count, bool from_end,
                           struct positions *found);

/* Another thread may write to an index array while a kernel works. So each of its elements is read once, by one of these
 * functions, and what was checked is what is used. */

enum {
    PIECE = 512, /* positions that stay in the nearest cache while they are worked on */
    UNROLLED = 4 /* positions of a step of the shortest loops, whose time would depend on where in memory their code lies */
};

/* A position wherever it lies. */
static inline int64_t position_in(const char *number) {
    typedef int64_t unaligned_position __attribute__((aligned(1), may_alias));
    return *(const volatile unaligned_position *)number;
}

/* The i-th one of those that lie next to each other. */
static inline int64_t position_at(const void *numbers, ssize_t i) {
    return position_in((const char *)numbers + i * (ssize_t)sizeof(int64_t));
}

static inline bool is_within(int64_t position, ssize_t size) { return (uint64_t)position < (uint64_t)size; }

/* Write n positions times `factor` to `to`, or add them there unless `first`; those before 0 count back from the end if
 * `from_end`. Whether all of them lie in 0 <= i < size. */
bool read_positions(ssize_t n, const int64_t *numbers, ssize_t size, bool from_end, ssize_t factor, bool first,
                    int64_t *restrict to);

/* The elements of an int64 array if they lie next to each other in row-major order, else NULL. */
const int64_t *adjacent_positions(array index);


#endif
