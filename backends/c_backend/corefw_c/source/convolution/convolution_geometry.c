/* The sizes of a convolution, its cut into slabs, and walks along their places. */
#include "convolution/convolution_geometry.h"

#include "core/memory.h"
#include "core/sizes.h"

/* Merge neighbouring axes along which every window is one element: their places lie one after the other. */
static void merge_plain_axes(struct convolution *p) {
    int kept = 0;
    for (int i = 1; i < p->axes; i++) {
        struct axis *a = &p->axis[kept], *b = &p->axis[i];
        bool plain =
            a->kernel == 1 && a->stride == 1 && !a->padding && b->kernel == 1 && b->stride == 1 && !b->padding;
        if (plain && a->in == a->out && b->in == b->out) {
            a->in *= b->in;
            a->out *= b->out;
        } else
            p->axis[++kept] = *b;
    }
    p->axes = kept + 1;
}

enum status read_convolution(struct convolution *p, array input, array output, const ssize_t *kernel, int count,
                             const ssize_t *sizes, bool transposed, ssize_t groups) {
    int axes = input->ndim - 2;
    if (axes < 1 || output->ndim != axes + 2 || count != 3 * axes || groups < 1) return WRONG_SHAPE;
    if (axes > MAX_AXES) return UNSUPPORTED;
    if (input->shape[0] != output->shape[0] || input->shape[1] % groups || output->shape[1] % groups)
        return WRONG_SHAPE;
    *p = (struct convolution){transposed,
                              axes,
                              .samples = input->shape[0],
                              .groups = groups,
                              .in_channels = input->shape[1] / groups,
                              .out_channels = output->shape[1] / groups,
                              .in_size = 1,
                              .out_size = 1,
                              .taps = 1,
                              .planes = 1,
                              .passes = 1};
    for (int i = 0; i < axes; i++) {
        ssize_t in = input->shape[2 + i], out = output->shape[2 + i];
        ssize_t stride = sizes[i], padding = sizes[axes + i], dilation = sizes[2 * axes + i];
        if (stride < 1 || padding < 0 || dilation < 1 || kernel[i] < 1 || in < 1 || out < 1) return WRONG_SHAPE;
        ssize_t extent = window_extent(kernel[i], dilation), few = transposed ? in : out;
        ssize_t padded = padded_size(transposed ? out : in, padding);
        if (padded > LARGEST_EXTENT || extent > LARGEST_EXTENT) return UNSUPPORTED;
        ssize_t left = padded - size_plus(size_times(few - 1, stride), extent); /* places that no window reaches */
        if (left < 0 || left >= (stride > dilation ? stride : dilation)) return WRONG_SHAPE;
        if (stride > padded) stride = padded; /* there is one window only, */
        if (kernel[i] == 1) dilation = 1;     /* or one tap, and the distance to others means nothing */
        p->axis[i] = (struct axis){
            .in = in, .out = out, .kernel = kernel[i], .stride = stride, .dilation = dilation, .padding = padding};
        p->in_size *= in;
        p->out_size *= out;
        p->taps *= kernel[i];
    }
    merge_plain_axes(p);
    for (int i = 0; i < p->axes; i++) {
        struct axis *a = &p->axis[i];
        ssize_t extent = (a->kernel - 1) * a->dilation;
        a->planes = transposed ? 1 : a->stride < extent + 1 ? a->stride : extent + 1;
        a->passes = !transposed ? 1 : a->stride < extent + 1 ? a->stride : extent + 1;
        *(transposed ? &a->before : &a->after) = extent / a->stride;
        a->first = transposed ? a->padding / a->stride : 0;
        a->last = transposed ? (a->out - 1 + a->padding) / a->stride + 1 : a->out;
        p->planes = size_times(p->planes, a->planes);
        p->passes = size_times(p->passes, a->passes);
    }
    return OK;
}

struct reach reach_of(const struct convolution *p, int axis, ssize_t tap) {
    const struct axis *a = &p->axis[axis];
    ssize_t distance = tap * a->dilation / a->stride, remainder = tap * a->dilation % a->stride;
    return p->transposed ? (struct reach){-distance, 0, remainder} : (struct reach){distance, remainder, 0};
}

struct slabs cut_into_slabs(const struct convolution *p, ssize_t places) {
    ssize_t all = 1;
    for (int i = 0; i < p->axes; i++) all *= p->axis[i].last - p->axis[i].first;
    struct slabs slabs = {.batch = 1, .cuts = 1};
    while (slabs.cut < p->axes - 1 && p->axis[slabs.cut].last - p->axis[slabs.cut].first == 1) slabs.cut++;
    ssize_t extent = p->axis[slabs.cut].last - p->axis[slabs.cut].first;
    slabs.depth = extent;
    if (all <= places) {
        ssize_t most = places / all, batches = (p->samples + most - 1) / most;
        slabs.batch = (p->samples + batches - 1) / batches;
    } else {
        ssize_t most = places / (all / extent);
        if (most < 1) most = 1;
        slabs.cuts = (extent + most - 1) / most;
        slabs.depth = (extent + slabs.cuts - 1) / slabs.cuts;
        slabs.cuts = (extent + slabs.depth - 1) / slabs.depth;
    }
    slabs.count = (p->samples + slabs.batch - 1) / slabs.batch * slabs.cuts;
    return slabs;
}

struct slab slab_at(const struct convolution *p, const struct slabs *slabs, ssize_t index) {
    struct slab slab = {.first_sample = index / slabs->cuts * slabs->batch};
    slab.samples = p->samples - slab.first_sample < slabs->batch ? p->samples - slab.first_sample : slabs->batch;
    for (int i = 0; i < p->axes; i++) {
        slab.first[i] = p->axis[i].first;
        slab.last[i] = p->axis[i].last;
    }
    ssize_t begin = slab.first[slabs->cut] + index % slabs->cuts * slabs->depth;
    slab.first[slabs->cut] = begin;
    if (begin + slabs->depth < slab.last[slabs->cut]) slab.last[slabs->cut] = begin + slabs->depth;
    return slab;
}

bool order_taps(const struct convolution *p, struct tap_order *order) {
    order->tap = allocate_items(p->taps, sizeof *order->tap);
    order->first = allocate_items(size_plus(p->passes, 1), sizeof *order->first);
    ssize_t *pass_of = allocate_items(p->taps, sizeof *pass_of);
    order->most = 0;
    if (order->tap && order->first && pass_of) {
        for (ssize_t i = 0; i <= p->passes; i++) order->first[i] = 0;
        for (ssize_t t = 0; t < p->taps; t++) {
            ssize_t pass = 0, rest = t, weight = 1;
            for (int i = p->axes - 1; i >= 0; i--) {
                pass += weight * reach_of(p, i, rest % p->axis[i].kernel).pass;
                rest /= p->axis[i].kernel;
                weight *= p->axis[i].passes;
            }
            pass_of[t] = pass;
            order->first[pass + 1]++;
        }
        for (ssize_t i = 0; i < p->passes; i++) {
            if (order->first[i + 1] > order->most) order->most = order->first[i + 1];
            order->first[i + 1] += order->first[i];
        }
        for (ssize_t t = 0; t < p->taps; t++)
            order->tap[order->first[pass_of[t]]++] = t; /* moves each start to its end */
        for (ssize_t i = p->passes; i > 0; i--) order->first[i] = order->first[i - 1];
        order->first[0] = 0;
        release(pass_of);
        return true;
    }
    release(pass_of);
    release_order(order);
    return false;
}

void release_order(struct tap_order *order) {
    release(order->tap);
    release(order->first);
}

struct layout layout_of_copy(const struct convolution *p, const struct slab *slab) {
    struct layout layout = {.plane = 1};
    for (int i = p->axes - 1; i >= 0; i--) {
        const struct axis *a = &p->axis[i];
        layout.pitch[i] = layout.plane;
        layout.origin = size_plus(layout.origin, size_times(a->before, layout.plane));
        layout.plane = size_times(layout.plane, slab->last[i] - slab->first[i] + a->before + a->after);
    }
    layout.channel = size_times(layout.plane, p->planes);
    layout.sample = size_times(layout.channel, p->in_channels);
    return layout;
}

void results_of_slab(const struct convolution *p, int cut, const struct slab *slab, ssize_t *first, ssize_t *count) {
    const struct axis *a = &p->axis[cut];
    ssize_t begin = slab->first[cut], end = slab->last[cut], pitch = 1;
    if (p->transposed) {
        begin = begin * a->stride > a->padding ? begin * a->stride - a->padding : 0;
        end = smaller(end * a->stride - a->padding, a->out);
    }
    for (int i = cut + 1; i < p->axes; i++) pitch *= p->axis[i].out;
    *first = begin * pitch;
    *count = (end - begin) * pitch;
}

ssize_t most_results(const struct convolution *p, const struct slabs *slabs) {
    const struct axis *a = &p->axis[slabs->cut];
    ssize_t most = smaller(p->transposed ? size_times(slabs->depth, a->stride) : slabs->depth, a->out);
    for (int i = slabs->cut + 1; i < p->axes; i++) most *= p->axis[i].out;
    return size_times(most, slabs->batch);
}

bool leaves_gaps(const struct convolution *p) {
    for (int i = 0; i < p->axes; i++)
        if (p->transposed && p->axis[i].passes < p->axis[i].stride) return true;
    return false;
}

bool is_unpadded(const struct convolution *p) {
    bool unpadded = true;
    for (int i = 0; i < p->axes; i++) {
        const struct axis *a = &p->axis[i];
        unpadded &= a->stride == 1 && a->padding == 0 && (!p->transposed || (a->kernel == 1 && a->in == a->out));
    }
    return unpadded;
}

struct layout layout_of_input(const struct convolution *p, const struct slab *slab, ssize_t group) {
    struct layout layout = {
        .plane = p->in_size, .channel = p->in_size, .sample = p->groups * p->in_channels * p->in_size};
    layout.origin = slab->first_sample * layout.sample + group * p->in_channels * p->in_size;
    ssize_t pitch = 1;
    for (int i = p->axes - 1; i >= 0; i--) {
        layout.pitch[i] = pitch;
        layout.origin += slab->first[i] * pitch;
        pitch *= p->axis[i].in;
    }
    return layout;
}

ssize_t offset_of_tap(const struct convolution *p, const struct layout *layout, ssize_t tap) {
    ssize_t offset = 0, plane = 0, weight = 1;
    for (int i = p->axes - 1; i >= 0; i--) {
        struct reach reach = reach_of(p, i, tap % p->axis[i].kernel);
        tap /= p->axis[i].kernel;
        offset += reach.shift * layout->pitch[i];
        plane += reach.plane * weight;
        weight *= p->axis[i].planes;
    }
    return offset + plane * layout->plane;
}

/* Make axis i of a walk the elements j of a copied axis, from 0 to count - 1, whose position start + j * step lies in
 * the input. */
static void take_inside(struct walk *w, int i, ssize_t count, ssize_t start, ssize_t step, ssize_t in,
                        ssize_t in_pitch, ssize_t pitch) {
    ssize_t begin = start < 0 ? (-start + step - 1) / step : 0, end = start < in ? (in - 1 - start) / step + 1 : 0;
    if (end > count) end = count;
    w->size[i] = end > begin ? end - begin : 0;
    w->source[i] = step * in_pitch;
    w->target[i] = pitch;
    w->source_start += (start + begin * step) * in_pitch;
    w->target_start += begin * pitch;
}

struct walk elements_of_plane(const struct convolution *p, const struct slab *slab, const struct layout *layout,
                              ssize_t plane) {
    struct walk walk = {.axes = p->axes + 2, .target_start = plane * layout->plane};
    ssize_t in_pitch = 1;
    for (int i = p->axes - 1; i >= 0; i--) {
        const struct axis *a = &p->axis[i];
        ssize_t step = p->transposed ? 1 : a->stride, start = p->transposed ? 0 : plane % a->planes - a->padding;
        take_inside(&walk, i + 2, slab->last[i] - slab->first[i] + a->before + a->after,
                    start + (slab->first[i] - a->before) * step, step, a->in, in_pitch, layout->pitch[i]);
        plane /= a->planes;
        in_pitch *= a->in;
    }
    take_inside(&walk, 1, p->in_channels, 0, 1, p->in_channels, in_pitch, layout->channel);
    take_inside(&walk, 0, slab->samples, slab->first_sample, 1, p->samples, p->groups * p->in_channels * in_pitch,
                layout->sample);
    return walk;
}

struct walk places_of_pass(const struct convolution *p, const struct slab *slab, const struct layout *layout,
                           ssize_t pass) {
    struct walk walk = {.axes = p->axes + 1, .source_start = layout->origin};
    ssize_t pitch = 1;
    for (int i = p->axes - 1; i >= 0; i--) {
        const struct axis *a = &p->axis[i];
        ssize_t first = slab->first[i], last = slab->last[i], step = 1, shift = 0; /* result = place * step - shift */
        if (p->transposed) {
            step = a->stride;
            shift = a->padding - pass % a->passes;
            pass /= a->passes;
            ssize_t lowest = shift > 0 ? (shift + step - 1) / step : 0;
            ssize_t beyond = a->out + shift > 0 ? (a->out - 1 + shift) / step + 1 : 0;
            if (lowest > first) first = lowest;
            if (beyond < last) last = beyond;
        }
        walk.size[i + 1] = last > first ? last - first : 0;
        walk.source[i + 1] = layout->pitch[i];
        walk.target[i + 1] = step * pitch;
        walk.source_start += (first - slab->first[i]) * layout->pitch[i];
        walk.target_start += (first * step - shift) * pitch;
        pitch *= a->out;
    }
    walk.size[0] = slab->samples;
    walk.source[0] = layout->sample;
    walk.target[0] = p->groups * p->out_channels * p->out_size;
    walk.target_start += slab->first_sample * walk.target[0];
    return walk;
}

struct side_by_side lay_side_by_side(const struct convolution *p, const struct slab *slab, ssize_t channels) {
    struct side_by_side s = {
        .size = channels, .elements.axes = p->axes + 1, .places.axes = p->axes + 1, .columns.axes = p->axes + 1};
    ssize_t in_pitch = 1, out_pitch = 1, last = p->axes;
    for (int i = p->axes - 1; i >= 0; i--) {
        const struct axis *a = &p->axis[i];
        ssize_t places = slab->last[i] - slab->first[i], step = a->kernel == 1 ? a->stride : 1,
                stride = a->stride / step;
        ssize_t count = (places - 1) * stride + (a->kernel - 1) * a->dilation + 1;
        take_inside(&s.elements, i + 1, count, slab->first[i] * a->stride - a->padding, step, a->in, in_pitch, s.size);
        s.places.size[i + 1] = places;
        s.places.source[i + 1] = size_times(stride, s.size);
        s.places.target[i + 1] = out_pitch;
        s.places.target_start += slab->first[i] * out_pitch;
        s.columns.size[i] = a->kernel;
        s.columns.source[i] = size_times(a->dilation, s.size);
        s.size = size_times(s.size, count);
        in_pitch *= a->in;
        out_pitch *= a->out;
    }
    take_inside(&s.elements, 0, slab->samples, slab->first_sample, 1, p->samples,
                p->groups * p->in_channels * in_pitch, s.size);
    s.places.size[0] = slab->samples;
    s.places.source[0] = s.size;
    s.places.target[0] = p->groups * p->out_channels * p->out_size;
    s.places.target_start += slab->first_sample * s.places.target[0];
    s.columns.size[last] = channels;
    s.columns.source[last] = 1;
    if (s.columns.source[last - 1] == channels) { /* neighbouring taps lie next to each other, too */
        s.columns.size[last - 1] *= channels;
        s.columns.source[last - 1] = 1;
        s.columns.axes--;
    }
    return s;
}

void begin_walk(struct walk *w) {
    w->done = false;
    w->source_now = w->source_start;
    w->target_now = w->target_start;
    for (int i = 0; i < w->axes; i++) {
        w->position[i] = 0;
        w->done |= w->size[i] == 0;
    }
}

struct walk begin_planes(const struct walk *walk) {
    struct walk planes = *walk;
    for (int i = walk->axes - 2; i < walk->axes; i++) planes.size[i] = walk->size[i] > 0;
    begin_walk(&planes);
    return planes;
}

int take_runs(struct walk *w, int limit, int most, struct run *runs, int *count) {
    int taken = 0, last = w->axes - 1;
    *count = 0;
    while (taken < limit && *count < most && !w->done) {
        ssize_t length = w->size[last] - w->position[last];
        if (length > limit - taken) length = limit - taken;
        runs[(*count)++] = (struct run){taken, length, w->source_now, w->target_now};
        taken += (int)length;
        w->position[last] += length;
        w->source_now += length * w->source[last];
        w->target_now += length * w->target[last];
        for (int i = last; w->position[i] == w->size[i]; i--) {
            if (i == 0) {
                w->done = true;
                break;
            }
            w->position[i] = 0;
            w->position[i - 1]++;
            w->source_now += w->source[i - 1] - w->size[i] * w->source[i];
            w->target_now += w->target[i - 1] - w->size[i] * w->target[i];
        }
    }
    return taken;
}
