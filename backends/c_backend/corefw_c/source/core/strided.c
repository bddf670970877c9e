/* Copies between arrays of one shape whose elements lie at any strides. */
#include "core/strided.h"
#include "core/threads.h"

#include <string.h>

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif

/* -- the walk -- */
static void exchange(ssize_t *a, int i, int j) {
    ssize_t held = a[i];
    a[i] = a[j], a[j] = held;
}

static void exchange_loops(struct walk *w, int i, int j) {
    exchange(w->shape, i, j), exchange(w->target_strides, i, j), exchange(w->source_strides, i, j);
}

static ssize_t distance(ssize_t stride) { return stride < 0 ? -stride : stride; }

/* Whether loop i belongs outside of loop j. */
static bool outside(const struct walk *w, int i, int j) {
    ssize_t a = distance(w->target_strides[i]), b = distance(w->target_strides[j]);
    return a != b ? a > b : distance(w->source_strides[i]) > distance(w->source_strides[j]);
}

struct walk walk_over(int ndim, const ssize_t *shape, char *target, const ssize_t *target_strides, const char *source,
                      const ssize_t *source_strides) {
    struct walk w;
    w.target = target, w.source = source, w.ndim = 0;
    for (int i = 0; i < ndim; i++) {
        if (shape[i] == 1) continue;
        ssize_t to = target_strides[i], from = source_strides[i];
        if (to < 0) {
            w.target += (shape[i] - 1) * to, w.source += (shape[i] - 1) * from;
            to = -to, from = -from;
        }
        int at = w.ndim++;
        w.shape[at] = shape[i], w.target_strides[at] = to, w.source_strides[at] = from;
        for (; at > 0 && outside(&w, at, at - 1); at--) exchange_loops(&w, at, at - 1);
    }
    int last = 0;
    for (int i = 1; i < w.ndim; i++) {
        ssize_t n = w.shape[i];
        bool joined =
            w.target_strides[last] == n * w.target_strides[i] && w.source_strides[last] == n * w.source_strides[i];
        last += !joined;
        w.shape[last] = joined ? w.shape[last] * n : n;
        w.target_strides[last] = w.target_strides[i], w.source_strides[last] = w.source_strides[i];
    }
    if (w.ndim) w.ndim = last + 1;
    return w;
}

struct walk_job {
    const struct walk *walk;
    plane_task task;
    const void *context;
    ssize_t chunks, chunk; /* a row is worked on in that many parts of that many elements */
};

/* The places of row `row`, counted over all loops but the innermost. */
static void find_row(const struct walk *w, ssize_t row, struct plane *plane) {
    plane->target = w->target, plane->source = w->source;
    for (int i = w->ndim - 2; i >= 0; i--) {
        ssize_t at = row % w->shape[i];
        row /= w->shape[i];
        plane->target += at * w->target_strides[i], plane->source += at * w->source_strides[i];
    }
}

static void walk_rows(void *context, ssize_t begin, ssize_t end) {
    const struct walk_job *job = context;
    const struct walk *w = job->walk;
    int last = w->ndim - 1;
    struct plane plane = {
        .n = w->shape[last], .target_step = w->target_strides[last], .source_step = w->source_strides[last]};
    ssize_t rows = last ? w->shape[last - 1] : 1; /* in a plane */
    if (last) plane.target_row = w->target_strides[last - 1], plane.source_row = w->source_strides[last - 1];
    if (job->chunks == 1) {
        for (ssize_t row = begin; row < end; row += plane.rows) {
            find_row(w, row, &plane);
            plane.rows = rows - row % rows < end - row ? rows - row % rows : end - row;
            job->task(job->context, &plane);
        }
        return;
    }
    plane.rows = 1;
    for (ssize_t i = begin; i < end; i++) {
        ssize_t start = i % job->chunks * job->chunk, left = w->shape[last] - start;
        find_row(w, i / job->chunks, &plane);
        plane.target += start * plane.target_step, plane.source += start * plane.source_step;
        plane.n = left < job->chunk ? left : job->chunk;
        job->task(job->context, &plane);
    }
}

void walk_planes(const struct walk *w, plane_task task, const void *context, ssize_t cost) {
    enum { FEW_ROWS = 64, CHUNK = 1 << 14 };
    if (w->ndim == 0) {
        task(context, &(struct plane){.rows = 1, .n = 1, .target = w->target, .source = w->source});
        return;
    }
    ssize_t rows = 1, n = w->shape[w->ndim - 1];
    for (int i = 0; i < w->ndim - 1; i++) rows *= w->shape[i];
    struct walk_job job = {w, task, context, 1, n};
    if (rows < FEW_ROWS && n > 2 * CHUNK) job.chunk = CHUNK, job.chunks = (n + CHUNK - 1) / CHUNK;
    parallel_for(rows * job.chunks, vector_grain_for(job.chunk * cost / 16), walk_rows, &job);
}

/* -- overlap -- */
/* The first byte of an array's elements and that after the last. */
static void find_ends(int ndim, const ssize_t *shape, const char *data, const ssize_t *strides, size_t size,
                      uintptr_t ends[2]) {
    ends[0] = (uintptr_t)data, ends[1] = ends[0] + size;
    for (int i = 0; i < ndim; i++) {
        if (shape[i] == 0) {
            ends[1] = ends[0];
            return;
        }
        ends[strides[i] > 0] += (uintptr_t)((shape[i] - 1) * strides[i]);
    }
}

bool extents_overlap(int ndim, const ssize_t *shape, const char *data, const ssize_t *strides, size_t size,
                     int other_ndim, const ssize_t *other_shape, const char *other, const ssize_t *other_strides,
                     size_t other_size) {
    uintptr_t a[2], b[2];
    find_ends(ndim, shape, data, strides, size, a);
    find_ends(other_ndim, other_shape, other, other_strides, other_size, b);
    return a[0] < b[1] && b[0] < a[1];
}

bool overlap(array a, array b) {
    return extents_overlap(a->ndim, a->shape, a->data, a->strides, size_of(dtype_of(a)), b->ndim, b->shape, b->data,
                           b->strides, size_of(dtype_of(b)));
}

/* -- copies -- */
typedef uint8_t word_1;
typedef uint16_t word_2;
typedef uint32_t word_4;
typedef uint64_t word_8;

#define TEMPLATE "core/strided.inc"
#include "core/each_size.h"

void copy_row(ssize_t n, char *target, ssize_t target_step, const char *source, ssize_t source_step, size_t size) {
    if (n <= 0) return; /* there may be nothing at the source */
    switch (size) {
    case 1: copy_row_1(n, target, target_step, source, source_step); return;
    case 2: copy_row_2(n, target, target_step, source, source_step); return;
    case 4: copy_row_4(n, target, target_step, source, source_step); return;
    case 8: copy_row_8(n, target, target_step, source, source_step); return;
    case 16: copy_row_16(n, target, target_step, source, source_step); return;
    }
}

void copy_strided(int ndim, const ssize_t *shape, char *target, const ssize_t *target_strides, const char *source,
                  const ssize_t *source_strides, size_t size) {
    for (int i = 0; i < ndim; i++)
        if (shape[i] == 0) return;
    struct walk w = walk_over(ndim, shape, target, target_strides, source, source_strides);
    ssize_t unit = (ssize_t)size;
    int last = w.ndim - 1;
    bool contiguous = w.ndim == 0 || (w.target_strides[last] == unit && w.source_strides[last] == unit);
    if (!contiguous && last > 1 &&
        w.source_strides[last - 1] != unit) /* rows of the target may be columns of the source */
        for (int i = 0; i < last - 1; i++)
            if (w.source_strides[i] == unit) exchange_loops(&w, i, last - 1);
    ssize_t cost = contiguous ? 2 * unit : 16;
    switch (size) {
    case 1: walk_planes(&w, copy_plane_1, NULL, cost); return;
    case 2: walk_planes(&w, copy_plane_2, NULL, cost); return;
    case 4: walk_planes(&w, copy_plane_4, NULL, cost); return;
    case 8: walk_planes(&w, copy_plane_8, NULL, cost); return;
    case 16: walk_planes(&w, copy_plane_16, NULL, cost); return;
    }
}
