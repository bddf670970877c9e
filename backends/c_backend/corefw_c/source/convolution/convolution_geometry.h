/* Where the products of a convolution lie: the sizes of the problem, its cut into slabs, and walks along their
 * places.
 *
 * A *place* is where a window lies: the position of the result, counted before the stride. Of a convolution, input =
 * place * stride + k * dilation - padding for kernel element (*tap*) k, and the result lies at the place. A transposed
 * one has result = place' * stride + k * dilation - padding for an input at place'; seen from the result, with place =
 * (result + padding) / stride, it takes the input at place - k * dilation / stride, for those taps that share the
 * remainder of (result + padding) modulo the stride. So it is one convolution without stride for each remainder: a
 * *pass*; remainders beyond all taps have none, and leave *gaps* in the result. In a convolution with stride, the input is kept apart by the remainders of its positions: *planes*, in which
 * all windows are dense. Both become sums over neighbours at fixed distances. */
#ifndef COREFW_CONVOLUTION_GEOMETRY_H
#define COREFW_CONVOLUTION_GEOMETRY_H

#include "core/array.h"

enum {
    MAX_AXES = 8,
    MAX_WALK = MAX_AXES + 2,
    RUNS = 64, /* of a walk at a time */
};

static inline ssize_t smaller(ssize_t a, ssize_t b) { return a < b ? a : b; }

/* How many blocks of `size` hold n items. */
static inline ssize_t blocks_of(ssize_t n, ssize_t size) { return (n + size - 1) / size; }

struct axis {
    ssize_t in, out, kernel, stride, dilation, padding;
    ssize_t planes, passes;
    ssize_t before, after; /* how far taps reach from a place */
    ssize_t first, last;   /* all places */
};

struct convolution {
    bool transposed;
    int axes;
    struct axis axis[MAX_AXES];
    ssize_t samples, groups, in_channels, out_channels; /* channels per group */
    ssize_t in_size, out_size, taps;                    /* elements per channel */
    ssize_t planes, passes;
};

/* Read the problem; `sizes` holds stride, padding and dilation of every axis. Checks all shapes but the weight's
 * first two sizes. */
enum status read_convolution(struct convolution *problem, array input, array output, const ssize_t *kernel, int count,
                             const ssize_t *sizes, bool transposed, ssize_t groups);

/* Distance and plane of a tap's element from a place, and the pass that it belongs to, along one axis. */
struct reach {
    ssize_t shift, plane, pass;
};
struct reach reach_of(const struct convolution *problem, int axis, ssize_t tap);

/* A part of the problem: some samples with all their places, or one sample with some places along one axis. */
struct slab {
    ssize_t first_sample, samples;
    ssize_t first[MAX_AXES], last[MAX_AXES];
};

/* The cut into slabs of about `places` places. */
struct slabs {
    ssize_t count;
    ssize_t batch, depth; /* samples, and places along axis `cut`, of one slab */
    ssize_t cuts;         /* slabs per batch */
    int cut;
};
struct slabs cut_into_slabs(const struct convolution *problem, ssize_t places);
struct slab slab_at(const struct convolution *problem, const struct slabs *slabs, ssize_t index);

/* Taps ordered by pass: those of pass i are tap[first[i]] to tap[first[i + 1] - 1]; `most` is the largest number of
 * one pass. */
struct tap_order {
    ssize_t *tap, *first, most;
};
bool order_taps(const struct convolution *problem, struct tap_order *order); /* false without memory */
void release_order(struct tap_order *order);

/* Where a slab's input lies in memory, the first place of every axis at offset 0: distances of neighbours along the
 * axes, of planes, of channels and of samples. */
struct layout {
    ssize_t pitch[MAX_AXES], origin, plane, channel, sample;
};

/* The layout of a padded copy, which is `sample` times the number of samples elements large; a size that does not fit is
 * the largest one. */
struct layout layout_of_copy(const struct convolution *problem, const struct slab *slab);

/* The results of a slab in each plane, which follow each other: the first one, and how many. No axis before the cut has more
 * than one result. */
void results_of_slab(const struct convolution *problem, int cut, const struct slab *slab, ssize_t *first, ssize_t *count);

/* As many as any slab has, or more. */
ssize_t most_results(const struct convolution *problem, const struct slabs *slabs);

/* Whether the passes leave places of the result to which no input contributes. */
bool leaves_gaps(const struct convolution *problem);

/* Whether all windows lie inside the input and next to each other: a copy then holds nothing but its elements. */
bool is_unpadded(const struct convolution *problem);

/* The layout of the input itself, if it is unpadded; origin counts from the input's first element. */
struct layout layout_of_input(const struct convolution *problem, const struct slab *slab, ssize_t group);

ssize_t offset_of_tap(const struct convolution *problem, const struct layout *layout, ssize_t tap);

/* A walk over elements in row-major order, each with an offset in a source and in a target. */
struct walk {
    int axes;
    ssize_t size[MAX_WALK], source[MAX_WALK], target[MAX_WALK]; /* number of elements, and their distances */
    ssize_t source_start, target_start;
    ssize_t position[MAX_WALK], source_now, target_now;
    bool done;
};

/* Elements of a walk that follow each other along its last axis. */
struct run {
    ssize_t column, length, source, target;
};

/* The elements of a slab's input that one plane of the copy holds; sources in the group's first channel of the first
 * sample, targets in the copy. */
struct walk elements_of_plane(const struct convolution *problem, const struct slab *slab, const struct layout *layout,
                              ssize_t plane);

/* The places of a pass within a slab; sources in the slab's input, targets in the result's first channel. */
struct walk places_of_pass(const struct convolution *problem, const struct slab *slab, const struct layout *layout,
                           ssize_t pass);

/* For the gradient of the weight, a slab's input is copied with its channels side by side. */
struct side_by_side {
    ssize_t size;                /* elements of a sample */
    struct walk elements;        /* of the first channel: sources in the input, targets in the copy */
    struct walk places, columns; /* sources in the copy; targets of places in the result */
};
struct side_by_side lay_side_by_side(const struct convolution *problem, const struct slab *slab, ssize_t channels);

void begin_walk(struct walk *walk);

/* The walk over the first elements of a walk's planes, which are its last two axes. */
struct walk begin_planes(const struct walk *walk);

/* The next `limit` elements as runs, of which there are `*count` and at most `most`; returns how many elements, 0 at
 * the end. */
int take_runs(struct walk *walk, int limit, int most, struct run *runs, int *count);

#endif
