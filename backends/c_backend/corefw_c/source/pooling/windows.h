/* The windows of pooling along the spatial dimensions, of which there are always three: missing ones have one place. */
#ifndef COREFW_WINDOWS_H
#define COREFW_WINDOWS_H

#include "core/array.h"

/* A window along one dimension: its elements inside the input are at begin, begin + step, ... */
struct window {
    ssize_t begin, taps;
    ssize_t length; /* by which a mean divides, padding perhaps counted */
};

struct windows {
    ssize_t size, count; /* of the input, and of windows */
    ssize_t kernel, stride, padding, step; /* of sliding windows; stride 0 for those that divide the input evenly */
    struct window *at;
};

struct pooling {
    ssize_t planes; /* (N, C) */
    struct windows dim[3];
};

/* The windows from an input to an output, (N, C, n sizes): sliding ones of sizes, strides, paddings and steps, n of each in
 * `options` (int64); with strides of 0 those that divide the input evenly. What OK is returned for is to be closed. */
enum status open_pooling(struct pooling *pooling, array input, array output, array options, bool padding_counts);

void close_pooling(struct pooling *pooling);

struct range {
    ssize_t begin, end;
};

/* The sliding windows of which no part is padding. */
struct range whole_windows(const struct windows *w);

/* The elements of a plane of the input and of the output. */
static inline ssize_t plane_size(const struct pooling *p) { return p->dim[0].size * p->dim[1].size * p->dim[2].size; }
static inline ssize_t plane_count(const struct pooling *p) { return p->dim[0].count * p->dim[1].count * p->dim[2].count; }

#endif
