/* The windows of images as matrix columns, and columns added where their windows lie. */
#include "core/array.h"
#include "kernels.h"
#include "core/memory.h"
#include "core/sizes.h"
#include "core/threads.h"
#include "core/widening.h"

#include <stdatomic.h>
#include <string.h>

/* Images of in_height by in_width elements, seen in height by width windows. */
struct columns {
    ssize_t planes, in_height, in_width, kernel_height, kernel_width, height, width;
    ssize_t stride_y, stride_x, padding_y, padding_x, dilation_y, dilation_x;
    size_t size; /* of an element */
    const char *from;
    char *to;
    struct half half; /* of sums of half types */
    atomic_bool *no_memory;
};

/* Which of the n windows begin <= window < end see inside an image at window * stride + offset. */
static void windows_inside(ssize_t n, ssize_t stride, ssize_t offset, ssize_t in, ssize_t *begin, ssize_t *end) {
    *begin = offset < 0 ? (-offset + stride - 1) / stride : 0;
    *end = offset < in ? (in - 1 - offset) / stride + 1 : 0;
    if (*begin > n) *begin = n;
    if (*end > n) *end = n;
    if (*end < *begin) *end = *begin;
}

/* n elements of a row that lie `step` elements apart. */
static void take(ssize_t n, size_t size, const char *from, ssize_t step, char *to) {
#define TAKE(type)                                                                                                    \
    for (ssize_t i = 0; i < n; i++) ((type *)to)[i] = ((const type *)from)[i * step];                                 \
    break
    switch (size) {
    case 1: TAKE(uint8_t);
    case 2: TAKE(uint16_t);
    case 4: TAKE(uint32_t);
    case 8: TAKE(uint64_t);
    case 16: TAKE(double _Complex);
    }
#undef TAKE
}

/* Rows of the columns: one for every plane and element of the kernel. */
static void take_windows(void *context, ssize_t begin, ssize_t end) {
    struct columns c = *(struct columns *)context;
    ssize_t size = (ssize_t)c.size;
    for (ssize_t item = begin; item < end; item++) {
        ssize_t kernel = item % (c.kernel_height * c.kernel_width), first, last, left, right;
        ssize_t down = kernel / c.kernel_width * c.dilation_y - c.padding_y;
        ssize_t across = kernel % c.kernel_width * c.dilation_x - c.padding_x;
        const char *image = c.from + item / (c.kernel_height * c.kernel_width) * c.in_height * c.in_width * size;
        char *to = c.to + item * c.height * c.width * size;
        windows_inside(c.height, c.stride_y, down, c.in_height, &first, &last);
        windows_inside(c.width, c.stride_x, across, c.in_width, &left, &right);
        memset(to, 0, (size_t)(first * c.width * size));
        memset(to + last * c.width * size, 0, (size_t)((c.height - last) * c.width * size));
        for (ssize_t y = first; y < last; y++) {
            const char *from = image + ((y * c.stride_y + down) * c.in_width + left * c.stride_x + across) * size;
            char *row = to + y * c.width * size;
            memset(row, 0, (size_t)(left * size));
            memset(row + right * size, 0, (size_t)((c.width - right) * size));
            if (c.stride_x == 1)
                memcpy(row + left * size, from, (size_t)((right - left) * size));
            else
                take(right - left, c.size, from, c.stride_x, row + left * size);
        }
    }
}

#define TEMPLATE "convolution/convolution_columns.inc"
#include "core/each_real.h"

/* How many windows a dimension has; false if none, or too large ones. Where there is only one window, or one
 * element in it, the distance to others means nothing and becomes 1. */
static bool count_windows(ssize_t in, ssize_t kernel, ssize_t padding, ssize_t *dilation, ssize_t *stride,
                          ssize_t *count) {
    if (in < 1 || kernel < 1 || padding < 0 || *dilation < 1 || *stride < 1) return false;
    ssize_t extent = window_extent(kernel, *dilation), padded = padded_size(in, padding);
    if (padded > LARGEST_EXTENT || extent > padded) return false;
    *count = (padded - extent) / *stride + 1;
    if (*count == 1) *stride = 1;
    if (kernel == 1) *dilation = 1;
    return true;
}

/* Read the problem; `options` holds kernel size, dilation, padding and stride, each for height and width. */
static enum status read_columns(struct columns *c, array images, array columns, const intptr_t *o, char *from,
                                char *to) {
    if (images->ndim != 4 || columns->ndim != 3 || !is_contiguous(images) || !is_contiguous(columns))
        return WRONG_SHAPE;
    *c = (struct columns){.planes = images->shape[0] * images->shape[1],
                          .in_height = images->shape[2],
                          .in_width = images->shape[3],
                          .kernel_height = o[0],
                          .kernel_width = o[1],
                          .dilation_y = o[2],
                          .dilation_x = o[3],
                          .padding_y = o[4],
                          .padding_x = o[5],
                          .stride_y = o[6],
                          .stride_x = o[7],
                          .size = size_of(dtype_of(images)),
                          .from = from,
                          .to = to,
                          .half = half_of(dtype_of(images))};
    if (images->shape[1] < 1) return WRONG_SHAPE;
    if (!count_windows(c->in_height, c->kernel_height, c->padding_y, &c->dilation_y, &c->stride_y, &c->height) ||
        !count_windows(c->in_width, c->kernel_width, c->padding_x, &c->dilation_x, &c->stride_x, &c->width))
        return WRONG_SHAPE;
    ssize_t rows = size_times(size_times(images->shape[1], o[0]), o[1]);
    if (!has_shape(columns, 3, (ssize_t[]){images->shape[0], rows, size_times(c->height, c->width)}))
        return WRONG_SHAPE;
    return dtype_of(images) == dtype_of(columns) ? OK : WRONG_DTYPE;
}

int im2col(uintptr_t input, const intptr_t options[8], uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    struct columns c;
    enum status status =
        read_columns(&c, ARRAY(input), ARRAY(output), options, ARRAY(input)->data, ARRAY(output)->data);
    if (status) return status;
    if (c.size == 0) return WRONG_DTYPE;
    parallel_for(c.planes * c.kernel_height * c.kernel_width, grain_for(c.height * c.width), take_windows, &c);
    return OK;
}

int col2im(uintptr_t input, const intptr_t options[8], uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    struct columns c;
    enum status status =
        read_columns(&c, ARRAY(output), ARRAY(input), options, ARRAY(input)->data, ARRAY(output)->data);
    if (status) return status;
    atomic_bool no_memory = false;
    c.no_memory = &no_memory;
    ssize_t grain = grain_for(c.kernel_height * c.kernel_width * c.height * c.width);
    switch (computed_in(dtype_of(ARRAY(input)))) {
    case FLOAT32: parallel_for(c.planes, grain, add_windows_f32, &c); break;
    case FLOAT64: parallel_for(c.planes, grain, add_windows_f64, &c); break;
    default: return WRONG_DTYPE;
    }
    return no_memory ? NO_MEMORY : OK;
}
