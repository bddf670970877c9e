/* Index arrays as positions in memory. */
#ifndef COREFW_POSITIONS_H
#define COREFW_POSITIONS_H

#include "array.h"

/* Position p lies at[p] * step bytes after the first element. */
struct positions {
    ssize_t count;
    const int64_t *at;
    ssize_t step;
    int64_t *made; /* to be released */
};

/* The shape that index arrays (int32 or int64) have together; false if they do not broadcast. */
bool common_shape(const uintptr_t *indices, int count, int *ndim, ssize_t *shape);

/* Where index arrays point together, the i-th in dimension dim + i of x, after a check of their range: from 0, or also back
 * from the end if `from_end`. */
enum status find_positions(array x, int dim, const uintptr_t *indices, int count, bool from_end, struct positions *found);

/* Whether all of n numbers, `step` bytes apart, lie in 0 <= i < size. */
bool all_within(ssize_t n, const char *numbers, ssize_t step, ssize_t size);

#endif
