/* Convolutions, transposed ones, and the gradient of their weights. */
#include "core/array.h"
#include "convolution/convolution_geometry.h"
#include "convolution/convolution_packed.h"
#include "convolution/convolution_storage.h"
#include "gemm/gemm.h"
#include "gemm/gemm_tile.h"
#include "gemm/gemm_transpose.h"
#include "kernels.h"
#include "core/caches.h"
#include "core/memory.h"
#include "core/sizes.h"
#include "core/threads.h"

#include <limits.h>
#include <stdatomic.h>
#include <string.h>

/* Blocks that fit the caches. */
enum {
    DEPTH = 224,                /* rows of a panel at most: with a panel of weights they fill the first-level cache, */
    DEEP_BYTES = 2048,          /* but of results, where sums cost more that go to the cache and back: so many bytes of a column */
    LARGE_CACHE = 2 << 20,      /* of the second level, from which on that does not pay (see gemm.c) */
    PANELS = 8,                 /* side by side, if they are short */
    SLAB_BYTES = 256 << 10,     /* of a slab's input, about: it stays in the second-level cache */
    NARROW_BYTES = 32 << 10,    /* of a slab with few channels: it stays in the first-level cache */
    PARTIAL_BYTES = 8 << 20,    /* of the partial sums of a weight's gradient */
    MOST_PLACES = 1024,         /* of a slab */
    FEWEST_PLACES = 128,        /* of one, since each one meets all weights, or results of tiles */
    FEWEST_UNCOPIED = 512,      /* or so many where the input is not copied */
    PLACES = 8,                 /* vectors of places at a time: as many sums as hide the time of an addition */
};

/* Which way is taken, measured. */
enum {
    FEW_CHANNELS = 3, /* results per group up to which panels do not pay */
    FEW_COLUMNS = 32, /* columns of a weight's gradient up to which panels do not pay */
};

/* Winograd's algorithm: where it is exact enough, and its blocks. */
enum {
    WIDEST_SPREAD = 256,       /* the largest magnitude in a sample by the mean of the others */
    FEW_TILES = 128,           /* that are all transformed before they are multiplied, */
    CHANNELS_AT_ONCE = 256,    /* by the weights of so many channels, which stay in the second-level cache */
    CHANNEL_BLOCK = 32,        /* channels whose weights are transformed together */
    SPREAD_BLOCK = 1 << 13,    /* elements whose magnitudes are summed together */
    OWN_BYTES = 512 << 10,     /* of a thread's transformed elements: half of the second-level cache */
    SHARED_BYTES = 8 << 20,    /* of those that all threads share: a part of the third-level cache */
    SPLIT_BYTES = 2 << 20,     /* of the sums of all splits of a weight's gradient, */
    FEWEST_SPLITS = 4,         /* if there are so many */
    FEWEST_SLABS = 16,         /* of a weight's gradient, if there are enough tiles, */
    MOST_TILES = 64,           /* and the tiles of each */
};

/* Work that is shared between threads. */
enum {
    TASKS_PER_THREAD = 4, /* at least, if the work allows, */
    PARTS_PER_THREAD = 2, /* or so many that share places, which each of them gathers */
    SPLITS = 8,           /* of the sums over places, at most */
    SPLIT_WORK = 1 << 23, /* products that are worth a split */
};

/* Load a vector once, not in every instruction that takes it. */
#if defined(__AVX512F__)
#define IN_REGISTER(vector) __asm__("" : "+v"(vector))
#else
#define IN_REGISTER(vector) (void)0
#endif

/* A tile has an even number of rows, except for the last one. */
static ssize_t tiles_of(ssize_t rows) { return ((rows + 1) / 2 + TILE_ROWS / 2 - 1) / (TILE_ROWS / 2); }

static ssize_t tile_start(ssize_t rows, ssize_t tile) {
    ssize_t start = (rows + 1) / 2 * tile / tiles_of(rows) * 2;
    return start < rows ? start : rows;
}

/* The size of the blocks of k, about equal. */
static ssize_t depth_of_blocks(ssize_t k, ssize_t most) { return k > 0 ? blocks_of(k, blocks_of(k, most)) : 1; }

/* The rows of a panel of results at most, for elements of `size` bytes. Zen 5, 1 MiB: products of images of 7 x 7 and 14 x 14 by
 * 256 to 2048 channels are 1.03 times as fast as with DEPTH. */
static ssize_t most_depth(size_t size) {
    ssize_t deep = DEEP_BYTES / (ssize_t)size;
    return second_cache() < LARGE_CACHE && deep > DEPTH ? deep : DEPTH;
}

/* Slabs of an input that is not copied, whose places are one axis: whole panels of `columns`. Zen 5, float32, 8 images, by the
 * speed of copied slabs: 256 channels of 56 x 56 1.1 to 1.25, 1024 of 14 x 14 1.15 to 1.3, 512 of 7 x 7 1.1. */
static struct slabs cut_uncopied(const struct convolution *p, ssize_t columns, ssize_t parts) {
    ssize_t places = smaller(p->samples * p->out_size / parts, MOST_PLACES);
    struct slabs slabs = cut_into_slabs(p, places > FEWEST_UNCOPIED ? places : FEWEST_UNCOPIED);
    if (slabs.cuts == 1) return slabs;
    slabs.depth = blocks_of(slabs.depth, columns) * columns;
    slabs.cuts = blocks_of(p->axis[0].out, slabs.depth);
    slabs.count = p->samples * slabs.cuts;
    return slabs;
}

/* Slabs that fit the cache, and at least `parts` of them if that leaves `fewest` places in each. */
static struct slabs cut_into_parts(const struct convolution *p, size_t size, ssize_t most, ssize_t fewest, ssize_t parts) {
    ssize_t all = p->samples;
    for (int i = 0; i < p->axes; i++) all *= p->axis[i].last - p->axis[i].first;
    ssize_t places = SLAB_BYTES / (ssize_t)size / p->planes / (p->in_channels > 0 ? p->in_channels : 1);
    if (places > most) places = most;
    if (places > all / parts) places = all / parts;
    if (places < fewest) places = fewest;
    return cut_into_slabs(p, places);
}

static struct slabs cut_for_cache(const struct convolution *p, size_t size, ssize_t most, ssize_t parts) {
    return cut_into_parts(p, size, most, FEWEST_PLACES, parts);
}

/* The same for convolutions of single channels, which lie side by side as vectors. */
static struct slabs cut_side_by_side(const struct convolution *p, ssize_t parts) {
    ssize_t all = p->samples, vectors = 1;
    for (int i = 0; i < p->axes; i++) {
        all *= p->axis[i].last - p->axis[i].first;
        vectors = size_times(vectors, p->axis[i].stride); /* of the larger side, for one of the smaller */
    }
    ssize_t places = smaller(SLAB_BYTES / VECTOR_BYTES / size_plus(vectors, 1), all / parts);
    return cut_into_slabs(p, places > FEWEST_PLACES ? places : FEWEST_PLACES);
}

/* Whether channels are convolved one by one, enough of them for vectors of `lanes`, and slabs have results that follow each
 * other. */
static bool suits_side_by_side(const struct convolution *p, ssize_t lanes) {
    if (p->in_channels != 1 || p->out_channels != 1 || 2 * p->groups < lanes || leaves_gaps(p)) return false;
    for (int i = 0; i < p->axes - 1 && p->axis[i].last - p->axis[i].first == 1; i++)
        if (p->axis[i].out > 1) return false;
    return true;
}

static ssize_t narrow_places(const struct convolution *p, size_t size) {
    return NARROW_BYTES / (ssize_t)size / (p->in_channels + FEW_CHANNELS);
}

/* Whether the input of a convolution, elements of real numbers, is a matrix of channels and places as it lies. */
static bool is_matrix(const struct convolution *p, const struct storage *stored) {
    return !stored->half.widen && p->axes == 1 && p->taps == 1 && is_unpadded(p);
}

/* Whether there is one group and one window, over all of the input or, transposed, of the result: products of matrices as they
 * lie. Zen 5, bfloat16, 16 samples, transposed, 100 channels of one place to 512 of 4 x 4: a tenth of the time of panels. */
static bool has_one_window(const struct convolution *p) {
    if (p->groups != 1) return false;
    for (int i = 0; i < p->axes; i++) {
        const struct axis *a = &p->axis[i];
        if ((p->transposed ? a->in : a->out) != 1 || (p->transposed ? a->out : a->in) != a->kernel) return false;
        if (a->padding || a->dilation != 1) return false;
    }
    return true;
}

/* Whether the gradient of a weight has too few rows or columns for panels. */
static bool is_narrow(const struct convolution *p) {
    return p->out_channels <= FEW_CHANNELS || p->in_channels * p->taps <= FEW_COLUMNS;
}

/* The largest number of places of a slab. */
static ssize_t places_of_slab(const struct convolution *p, const struct slabs *slabs) {
    struct slab slab = slab_at(p, slabs, 0);
    ssize_t places = slab.samples;
    for (int i = 0; i < p->axes; i++) places *= slab.last[i] - slab.first[i];
    return places;
}

/* Offsets of the products of a place, for every channel and every of these taps. */
static void offsets_of_products(const struct convolution *p, const struct layout *layout, ssize_t taps,
                                const ssize_t *tap, ssize_t *offsets) {
    for (ssize_t l = 0; l < taps * p->in_channels; l++)
        offsets[l] = l < taps ? offset_of_tap(p, layout, tap[l]) : offsets[l - taps] + layout->channel;
}

/* The elements 0, 2, 4, ... of a row, given its first vector and the one that starts at element LANES - 1. */
#define DEFINE_EVERY_SECOND(suffix, ...)                                                                              \
    static inline vector_##suffix every_second_##suffix(vector_##suffix low, vector_##suffix high) {                  \
        return __builtin_shufflevector(low, high, __VA_ARGS__);                                                       \
    }
#if VECTOR_BYTES == 64
DEFINE_EVERY_SECOND(f32, 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31)
DEFINE_EVERY_SECOND(f64, 0, 2, 4, 6, 9, 11, 13, 15)
#elif VECTOR_BYTES == 32
DEFINE_EVERY_SECOND(f32, 0, 2, 4, 6, 9, 11, 13, 15)
DEFINE_EVERY_SECOND(f64, 0, 2, 5, 7)
#else
DEFINE_EVERY_SECOND(f32, 0, 2, 5, 7)
DEFINE_EVERY_SECOND(f64, 0, 3)
#endif

#define TEMPLATE "convolution/convolution_panel.inc"
#include "core/each_real.h"

#define TEMPLATE "convolution/convolution_copy.inc"
#include "core/each_storage.h"
#define TEMPLATE "convolution/convolution_narrow.inc"
#include "core/each_real.h"
#define TEMPLATE "convolution/convolution_channels.inc"
#include "core/each_real.h"

#include "convolution/winograd.h"

#define TEMPLATE "convolution/winograd.inc"
#include "core/each_real.h"
#define TEMPLATE "convolution/convolution_winograd.inc"
#include "core/each_real.h"
#define TEMPLATE "convolution/convolution_winograd_weight.inc"
#include "core/each_real.h"
#define TEMPLATE "convolution/convolution_dense.inc"
#include "core/each_real.h"
#define TEMPLATE "convolution/convolution_weight.inc"
#include "core/each_real.h"

/* What multiplies pairs of bfloat16; NULL for other types, and where there is nothing. */
static const struct engine *engine_of(enum dtype dtype, int products) {
    if (dtype != BFLOAT16) return NULL;
#if defined(__AVX512F__)
    if (products == BY_PAIRS) return &bf16_pairs;
#endif
    return products == BY_TILES ? &bf16_tiles : NULL;
}

static multiplication *multiplication_of(enum dtype dtype, int products) {
    return dtype == FLOAT32 ? multiply_f32 : dtype == FLOAT64 ? multiply_f64 : half_multiplication(dtype, products);
}

/* A convolution with one window; `bias` may be NULL. */
static bool convolve_window(const struct convolution *p, const struct storage *stored, multiplication *multiply,
                            const void *input, const void *weight, const void *bias, void *output) {
    ssize_t n = p->out_channels * p->out_size, k = p->in_channels * p->in_size;
    char *added = bias ? allocate_items(n, (size_t)stored->size) : NULL;
    if (bias && !added) return false;
    for (ssize_t i = 0; bias && i < n; i++)
        memcpy(added + i * stored->size, element(stored, bias, i / p->out_size), (size_t)stored->size);
    bool done = multiply(&(struct product){.m = p->samples,
                                           .n = n,
                                           .k = k,
                                           .a = input,
                                           .b = weight,
                                           .added = added,
                                           .c = output,
                                           .a_row = k,
                                           .a_column = 1,
                                           .b_row = p->transposed ? n : 1,
                                           .b_column = p->transposed ? 1 : k,
                                           .c_row = n,
                                           .added_column = 1,
                                           .alpha = 1,
                                           .beta = 1});
    release(added);
    return done;
}

/* The gradient of its weight. */
static bool weight_gradient_window(const struct convolution *p, multiplication *multiply, const void *input,
                                   const void *output_grad, void *weight_grad) {
    ssize_t n = p->in_channels * p->taps;
    return multiply(&(struct product){.m = p->out_channels,
                                      .n = n,
                                      .k = p->samples,
                                      .a = output_grad,
                                      .b = input,
                                      .c = weight_grad,
                                      .a_row = 1,
                                      .a_column = p->out_channels,
                                      .b_row = n,
                                      .b_column = 1,
                                      .c_row = n,
                                      .alpha = 1});
}

/* How arrays of a type are read; NULL for types that are not convolved. */
static const struct storage *storage_of(enum dtype dtype) {
    static const struct storage stored[] = {
        {FLOAT32, sizeof(float), {NULL, NULL}, lay_out_f32, measure_spread_f32},
        {FLOAT64, sizeof(double), {NULL, NULL}, lay_out_f64, measure_spread_f64},
        {BFLOAT16, 2, {widen_bfloat16, narrow_bfloat16}, lay_out_bf16, measure_spread_bf16},
        {FLOAT16, 2, {widen_float16, narrow_float16}, lay_out_f16, measure_spread_f16},
    };
    for (size_t i = 0; i < sizeof stored / sizeof *stored; i++)
        if (stored[i].dtype == dtype) return &stored[i];
    return NULL;
}

static bool is_vector(array a, ssize_t size) { return has_shape(a, 1, (ssize_t[]){size}) && is_contiguous(a); }

int convolution(uintptr_t input, uintptr_t weight, uintptr_t bias, int count, const intptr_t *sizes, int transposed,
                intptr_t groups, int products, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    array x = ARRAY(input), w = ARRAY(weight), y = ARRAY(output), b = bias ? ARRAY(bias) : NULL;
    if (w->ndim != x->ndim || w->ndim < 3) return WRONG_SHAPE;
    struct convolution p;
    enum status status = read_convolution(&p, x, y, w->shape + 2, count, sizes, transposed, groups);
    if (status) return status;
    if (w->shape[0] != groups * (transposed ? p.in_channels : p.out_channels)) return WRONG_SHAPE;
    if (w->shape[1] != (transposed ? p.out_channels : p.in_channels)) return WRONG_SHAPE;
    if (!is_contiguous(x) || !is_contiguous(w) || !is_contiguous(y)) return WRONG_SHAPE;
    if (b && !is_vector(b, groups * p.out_channels)) return WRONG_SHAPE;
    enum dtype dtype = dtype_of(x);
    if (dtype_of(w) != dtype || dtype_of(y) != dtype || (b && dtype_of(b) != dtype)) return WRONG_DTYPE;
    const struct storage *stored = storage_of(dtype);
    if (!stored) return WRONG_DTYPE;
    if (count_of(y) == 0) return OK;
    multiplication *multiply = multiplication_of(dtype, products);
    if (has_one_window(&p))
        return convolve_window(&p, stored, multiply, x->data, w->data, b ? b->data : NULL, y->data) ? OK : NO_MEMORY;
    struct tap_order order;
    if (!order_taps(&p, &order)) return NO_MEMORY;
    const struct engine *pairs = p.out_channels > FEW_CHANNELS ? engine_of(dtype, products) : NULL;
    float *wide = b && stored->half.widen ? allocate_items(count_of(b), sizeof *wide) : NULL; /* the bias */
    if (wide) stored->half.widen(count_of(b), b->data, wide);
    void *from = x->data, *by = w->data, *plus = b && !wide ? b->data : NULL, *to = y->data;
    bool memory = !b || plus || wide, tiles = pairs && products == BY_PAIRS && beats_pairs(&p, FEWEST_TILES);
    bool done = !memory ? false
                : tiles && convolve_winograd_f32(4, &p, stored, from, by, wide, to) ? true
                : pairs            ? convolve_packed(pairs, &p, &order, from, by, wide, to)
                : dtype == FLOAT64 ? convolve_f64(&p, &order, stored, from, by, plus, to)
                                   : convolve_f32(&p, &order, stored, from, by, wide ? wide : plus, to);
    release(wide);
    release_order(&order);
    return done ? OK : NO_MEMORY;
}

int convolution_weight(uintptr_t input, uintptr_t output_grad, int count, const intptr_t *sizes, intptr_t groups,
                       int products, uintptr_t weight_grad) {
    if (!WRITABLE(weight_grad)) return READ_ONLY;
    array x = ARRAY(input), g = ARRAY(output_grad), w = ARRAY(weight_grad);
    if (w->ndim != x->ndim || w->ndim < 3) return WRONG_SHAPE;
    struct convolution p;
    enum status status = read_convolution(&p, x, g, w->shape + 2, count, sizes, false, groups);
    if (status) return status;
    if (w->shape[0] != groups * p.out_channels || w->shape[1] != p.in_channels) return WRONG_SHAPE;
    if (!is_contiguous(x) || !is_contiguous(w) || !is_contiguous(g)) return WRONG_SHAPE;
    enum dtype dtype = dtype_of(x);
    if (dtype_of(w) != dtype || dtype_of(g) != dtype) return WRONG_DTYPE;
    const struct storage *stored = storage_of(dtype);
    if (!stored) return WRONG_DTYPE;
    if (count_of(w) == 0) return OK;
    if (p.samples == 0) {
        memset(w->data, 0, (size_t)count_of(w) * size_of(dtype));
        return OK;
    }
    void *from = x->data, *by = g->data, *to = w->data;
    if (has_one_window(&p))
        return weight_gradient_window(&p, multiplication_of(dtype, products), from, by, to) ? OK : NO_MEMORY;
    const struct engine *pairs = is_narrow(&p) ? NULL : engine_of(dtype, products);
    bool tiles = pairs && products == BY_PAIRS && groups == 1 && beats_pairs(&p, FEWEST_SUMMED);
    bool done = tiles && weight_gradient_winograd_f32(4, &p, stored, from, by, to) ? true
                : pairs            ? weight_gradient_packed(pairs, &p, from, by, to)
                : dtype == FLOAT64 ? weight_gradient_f64(&p, stored, from, by, to)
                                   : weight_gradient_f32(&p, stored, from, by, to);
    return done ? OK : NO_MEMORY;
}
