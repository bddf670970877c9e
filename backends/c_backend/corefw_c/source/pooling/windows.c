/* The windows of pooling along the spatial dimensions. */
#include "pooling/windows.h"
#include "core/memory.h"
#include "core/sizes.h"

static ssize_t smaller(ssize_t a, ssize_t b) { return a < b ? a : b; }
static ssize_t larger(ssize_t a, ssize_t b) { return a > b ? a : b; }

static struct window sliding(const struct windows *w, ssize_t i, bool padding_counts) {
    ssize_t start = i * w->stride - w->padding, end = smaller(start + w->kernel, w->size + w->padding);
    ssize_t first = start < 0 ? (-start + w->step - 1) / w->step : 0; /* the first tap inside */
    ssize_t behind = start < w->size ? smaller(w->kernel, (w->size - start + w->step - 1) / w->step) : 0;
    ssize_t length = padding_counts ? end - start : smaller(end, w->size) - larger(start, 0);
    return (struct window){start + first * w->step, larger(behind - first, 0), length};
}

static struct window dividing(const struct windows *w, ssize_t i) {
    ssize_t begin = i * w->size / w->count, end = ((i + 1) * w->size + w->count - 1) / w->count;
    return (struct window){begin, end - begin, end - begin};
}

enum status open_pooling(struct pooling *pooling, array input, array output, array options, bool padding_counts) {
    int n = input->ndim - 2;
    if (n < 1 || n > 3 || output->ndim != input->ndim) return WRONG_SHAPE;
    if (output->shape[0] != input->shape[0] || output->shape[1] != input->shape[1]) return WRONG_SHAPE;
    if (!is_contiguous(input) || !is_contiguous(output)) return WRONG_SHAPE;
    if (dtype_of(options) != INT64) return WRONG_DTYPE;
    if (!has_shape(options, 1, (ssize_t[]){4 * n}) || !is_contiguous(options)) return WRONG_SHAPE;
    const int64_t *kernel = (const int64_t *)options->data, *stride = kernel + n, *padding = stride + n, *step = padding + n;
    ssize_t windows = 0;
    pooling->planes = input->shape[0] * input->shape[1];
    for (int i = 0; i < 3; i++) {
        int j = i - (3 - n); /* among the n dimensions that there are */
        struct windows *w = pooling->dim + i;
        *w = (struct windows){1, 1, 1, 1, 0, 1, NULL};
        if (j >= 0) {
            w->size = input->shape[2 + j];
            w->count = output->shape[2 + j];
            w->stride = stride[j];
        }
        if (j >= 0 && w->stride) {
            w->kernel = kernel[j];
            w->padding = padding[j];
            w->step = step[j];
            if (w->kernel < 1 || w->stride < 1 || w->step < 1) return WRONG_SHAPE;
            ssize_t extent = window_extent(w->kernel, w->step);
            if (extent > LARGEST_EXTENT) return UNSUPPORTED;
            if (w->padding < 0 || w->padding > extent / 2) return WRONG_SHAPE;
            if (size_times(w->count - 1, w->stride) >= w->size + w->padding) return WRONG_SHAPE; /* each begins before the end */
            if (w->count == 1) w->stride = 1; /* the distance to other windows, */
            if (w->kernel == 1) w->step = 1;  /* or to other taps, means nothing */
        }
        windows += w->count;
    }
    struct window *at = allocate_items(windows, sizeof *at);
    if (!at) return NO_MEMORY;
    for (int i = 0; i < 3; i++) {
        struct windows *w = pooling->dim + i;
        w->at = at;
        for (ssize_t k = 0; k < w->count; k++) *at++ = w->stride ? sliding(w, k, padding_counts) : dividing(w, k);
    }
    return OK;
}

void close_pooling(struct pooling *pooling) { release(pooling->dim[0].at); }

struct range whole_windows(const struct windows *w) {
    struct range whole = {0, w->stride ? w->count : 0};
    while (whole.begin < whole.end && w->at[whole.begin].taps < w->kernel) whole.begin++;
    while (whole.begin < whole.end && w->at[whole.end - 1].taps < w->kernel) whole.end--;
    return whole;
}
