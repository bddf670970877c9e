/* Elementwise loops over operands that broadcast or are strided: blocks of rows, in parallel. */
#include "elementwise/elementwise.h"
#include "core/halves.h"
#include "core/strided.h"
#include "core/threads.h"

#include <string.h>

enum {
    MOST_OPERANDS = 6,
    BLOCK = 8192,        /* bytes of an operand in a block */
    LONG_ROW = 512,      /* elements; from so many on a block is of one row */
    REPEATED = 512,      /* columns of a block if repeated elements have to be written out, once per strip */
    SMALLEST_BLOCK = 64, /* elements; smaller ones cost more than NumPy's iterator does */
    TILE_ROWS = 32,      /* of a block some of whose operands are transposed */
    STRIP = 8,           /* blocks */
    FEWEST = 1 << 15,    /* elements of a result that is worth the walk by blocks where there is a choice */
};

struct operand {
    int dtype;
    bool widen; /* a half type, computed in float */
    ssize_t size;
    char *data;
    ssize_t strides[MAX_DIMS]; /* of the loops, in bytes; 0 where elements are repeated */
};

struct job {
    const struct elementwise_loop *loop;
    int inputs; /* the operands, before the result */
    struct operand operands[MOST_OPERANDS];
    ssize_t count; /* elements of the result */
    int ndim;      /* the loops, the innermost first; at least 2 */
    ssize_t shape[MAX_DIMS];
    ssize_t columns, rows;      /* of a block */
    ssize_t strip;              /* columns of neighbouring blocks, which have the repeated elements in common */
    ssize_t strips, row_blocks; /* so many cover the inner two loops */
};

/* What a thread has in its buffers: an operand's block of that many rows and columns from there. */
struct buffer {
    const char *from;
    ssize_t rows, columns;
    char elements[BLOCK] __attribute__((aligned(64)));
};

static ssize_t smaller(ssize_t a, ssize_t b) { return a < b ? a : b; }

/* -- blocks -- */
/* Whether a block's elements lie one after the other. */
static bool is_dense(const struct operand *o, ssize_t rows, ssize_t columns) {
    return o->strides[0] == o->size && (rows == 1 || o->strides[1] == columns * o->size);
}

/* Rows times columns of elements from one place to another one, either strided. */
static void copy_block(ssize_t rows, ssize_t columns, ssize_t size, char *to, const ssize_t *to_strides,
                       const char *from, const ssize_t *from_strides) {
    bool transposed = (from_strides[1] == size) != (to_strides[1] == size) && columns > 1;
    if (transposed && from_strides[0] != 0) {
        ssize_t shape[] = {rows, columns}, targets[] = {to_strides[1], to_strides[0]};
        copy_strided(2, shape, to, targets, from, (ssize_t[]){from_strides[1], from_strides[0]}, (size_t)size);
        return;
    }
    for (ssize_t i = 0; i < rows; i++)
        copy_row(columns, to + i * to_strides[1], to_strides[0], from + i * from_strides[1], from_strides[0],
                 (size_t)size);
}

/* The block from `from` as the loop takes it, where it lies or in the buffer. */
static char *read_block(const struct operand *o, ssize_t rows, ssize_t columns, char *from, struct buffer *buffer) {
    bool dense = is_dense(o, rows, columns);
    if (dense && !o->widen) return from;
    if (from == buffer->from && columns == buffer->columns && rows <= buffer->rows) return buffer->elements;
    buffer->from = from, buffer->rows = rows, buffer->columns = columns;
    uint16_t halves[BLOCK / sizeof(float)];
    const uint16_t *source = (const uint16_t *)from;
    if (!dense) {
        char *copy = o->widen ? (char *)halves : buffer->elements;
        copy_block(rows, columns, o->size, copy, (ssize_t[]){o->size, columns * o->size}, from, o->strides);
        source = halves;
    }
    if (o->widen)
        (o->dtype == FLOAT16 ? widen_float16 : widen_bfloat16)(rows * columns, source, buffer->elements);
    return buffer->elements;
}

/* A block of results, to where the caller wants them. */
static void write_block(const struct operand *o, ssize_t rows, ssize_t columns, const char *results, char *to) {
    bool dense = is_dense(o, rows, columns);
    uint16_t halves[BLOCK / sizeof(float)], *narrowed = dense ? (uint16_t *)to : halves;
    if (o->widen) {
        (o->dtype == FLOAT16 ? narrow_float16 : narrow_bfloat16)(rows * columns, results, narrowed);
        results = (const char *)halves;
    }
    if (!dense)
        copy_block(rows, columns, o->size, to, o->strides, results, (ssize_t[]){o->size, columns * o->size});
}

static void run_block(const struct job *job, ssize_t rows, ssize_t columns, char *const *at, struct buffer *buffers) {
    int inputs = job->inputs;
    const struct operand *result = job->operands + inputs;
    char *in[MOST_OPERANDS];
    for (int i = 0; i < inputs; i++) in[i] = read_block(job->operands + i, rows, columns, at[i], buffers + i);
    bool direct = !result->widen && is_dense(result, rows, columns);
    char *results = direct ? at[inputs] : buffers[inputs].elements;
    job->loop->span(rows * columns, in, results);
    if (!direct) write_block(result, rows, columns, results, at[inputs]);
}

static void run_strips(void *context, ssize_t begin, ssize_t end) {
    const struct job *job = context;
    struct buffer buffers[MOST_OPERANDS];
    for (int i = 0; i < job->inputs; i++) buffers[i].from = NULL;
    for (ssize_t strip = begin; strip < end; strip++) {
        ssize_t left = strip / job->strips, column = strip % job->strips * job->strip;
        ssize_t row = left % job->row_blocks * job->rows;
        char *at[MOST_OPERANDS];
        for (int i = 0; i <= job->inputs; i++) {
            const struct operand *o = job->operands + i;
            at[i] = o->data + column * o->strides[0] + row * o->strides[1];
        }
        left /= job->row_blocks;
        for (int d = 2; d < job->ndim; d++) {
            ssize_t index = left % job->shape[d];
            left /= job->shape[d];
            for (int i = 0; i <= job->inputs; i++) at[i] += index * job->operands[i].strides[d];
        }
        ssize_t rows = smaller(job->shape[1] - row, job->rows), stop = smaller(job->shape[0], column + job->strip);
        for (; column < stop; column += job->columns) {
            ssize_t columns = smaller(stop - column, job->columns);
            run_block(job, rows, columns, at, buffers);
            for (int i = 0; i <= job->inputs; i++) at[i] += columns * job->operands[i].strides[0];
        }
    }
}

/* -- loops -- */
static ssize_t distance(ssize_t stride) { return stride < 0 ? -stride : stride; }

/* The stride of an operand in dimension d of the result. */
static ssize_t stride_in(array a, array out, int d) {
    int own = d - (out->ndim - a->ndim);
    return own < 0 || a->shape[own] == 1 ? 0 : a->strides[own];
}

static bool broadcasts_to(array a, array out) {
    int missing = out->ndim - a->ndim;
    if (a->ndim < 0 || missing < 0) return false;
    for (int d = 0; d < a->ndim; d++)
        if (a->shape[d] != 1 && a->shape[d] != out->shape[d + missing]) return false;
    return true;
}

static bool is_aligned(array a, ssize_t unit) {
    uintptr_t bits = (uintptr_t)a->data;
    for (int d = 0; d < a->ndim; d++) bits |= (uintptr_t)a->strides[d];
    return (bits & (uintptr_t)(unit - 1)) == 0;
}

/* Whether a result may be written block by block while the input is read. */
static bool is_apart(array a, array out) {
    if (!overlap(a, out)) return true;
    return a->data == out->data && same_shape(a, out) && size_of(dtype_of(a)) == size_of(dtype_of(out)) &&
           (a->ndim == 0 || !memcmp(a->strides, out->strides, (size_t)a->ndim * sizeof *a->strides));
}

/* The dimensions of more than one element, the shortest stride first; returns how many. */
static int order_of(array out, int *order) {
    int ndim = 0;
    for (int d = out->ndim - 1; d >= 0; d--) {
        if (out->shape[d] == 1) continue;
        int at = ndim++;
        ssize_t stride = distance(out->strides[d]);
        for (; at > 0 && stride < distance(out->strides[order[at - 1]]); at--) order[at] = order[at - 1];
        order[at] = d;
    }
    return ndim;
}

/* Make the loops: in the order of the result's memory, as few and as long as possible. False if elements of the result
 * share memory. */
static bool find_loops(struct job *job, const array *arrays) {
    array out = arrays[job->inputs];
    int order[MAX_DIMS], ndim = order_of(out, order), last = -1;
    ssize_t reach = job->operands[job->inputs].size;
    for (int j = 0; j < ndim; j++) {
        int d = order[j];
        ssize_t n = out->shape[d], strides[MOST_OPERANDS];
        bool back = out->strides[d] < 0, joined = last >= 0;
        if (distance(out->strides[d]) < reach) return false;
        reach += (n - 1) * distance(out->strides[d]);
        for (int i = 0; i <= job->inputs; i++) {
            struct operand *o = job->operands + i;
            strides[i] = stride_in(arrays[i], out, d);
            if (back) o->data += (n - 1) * strides[i], strides[i] = -strides[i];
            joined = joined && strides[i] == job->shape[last] * o->strides[last];
        }
        if (joined) {
            job->shape[last] *= n;
            continue;
        }
        job->shape[++last] = n;
        for (int i = 0; i <= job->inputs; i++) job->operands[i].strides[last] = strides[i];
    }
    for (; last < 1; job->shape[++last] = 1)
        for (int i = 0; i <= job->inputs; i++) job->operands[i].strides[last + 1] = 0;
    job->ndim = last + 1;
    return true;
}

/* Cut the two inner loops into blocks; false if they are too short for that. */
static bool find_blocks(struct job *job) {
    ssize_t widest = 1, n = job->shape[0], rows = job->shape[1];
    bool transposed = false, repeated = false;
    for (int i = 0; i <= job->inputs; i++) {
        const struct operand *o = job->operands + i;
        ssize_t size = o->widen ? (ssize_t)sizeof(float) : o->size;
        widest = size > widest ? size : widest;
        transposed |= o->strides[1] == o->size && o->strides[0] != o->size && o->strides[0] != 0;
        repeated |= o->strides[0] == 0;
    }
    ssize_t most = BLOCK / widest;
    if (transposed) most /= TILE_ROWS;
    else if (repeated && n >= LONG_ROW) most = smaller(most, REPEATED);
    job->columns = smaller(n, most);
    job->rows = smaller(rows, transposed ? TILE_ROWS : n < LONG_ROW ? most / job->columns : 1);
    job->strip = STRIP * job->columns;
    job->strips = (n + job->strip - 1) / job->strip;
    job->row_blocks = (rows + job->rows - 1) / job->rows;
    return job->columns * job->rows >= SMALLEST_BLOCK;
}

/* Check the operands and make the loops. */
static enum status open_job(struct job *job, const struct elementwise_loop *loop, int count, const uintptr_t *inputs,
                            uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    job->loop = loop, job->inputs = count; /* to clear all of it would take longer than a small call */
    array arrays[MOST_OPERANDS], out = ARRAY(output);
    if (count != loop->tensors + loop->numbers) return UNSUPPORTED;
    for (int i = 0; i <= count; i++) {
        array a = arrays[i] = i < count ? ARRAY(inputs[i]) : out;
        int dtype = loop->types[i < count ? i : MOST_OPERANDS - 1];
        ssize_t size = (ssize_t)size_of(dtype);
        if (!a || !broadcasts_to(a, out)) return WRONG_SHAPE;
        if ((int)dtype_of(a) != dtype) return WRONG_DTYPE;
        if (!is_aligned(a, size < 8 ? size : 8) || !is_apart(a, out)) return UNSUPPORTED;
        bool half = dtype == FLOAT16 || dtype == BFLOAT16;
        job->operands[i].dtype = dtype, job->operands[i].size = size, job->operands[i].data = a->data;
        job->operands[i].widen = half && loop->types[0] != BOOL; /* choices move halves as they are */
    }
    job->count = count_of(out);
    return job->count == 0 || find_loops(job, arrays) ? OK : UNSUPPORTED;
}

static void run_blocks(struct job *job) {
    ssize_t strips = job->strips * job->row_blocks, elements = job->rows * smaller(job->strip, job->shape[0]);
    for (int d = 2; d < job->ndim; d++) strips *= job->shape[d];
    parallel_for(strips, grain_for((job->loop->cost + 1) * elements), run_strips, job);
}

/* The innermost loop again and again, as NumPy's iterator runs it. */
static void run_rows(const struct job *job) {
    intptr_t steps[MOST_OPERANDS], n = job->shape[0];
    ssize_t index[MAX_DIMS] = {0};
    char *at[MOST_OPERANDS];
    for (int i = 0; i <= job->inputs; i++) at[i] = job->operands[i].data, steps[i] = job->operands[i].strides[0];
    for (int d = 0; d < job->ndim;) {
        elementwise_run(at, &n, steps, (void *)job->loop);
        for (d = 1; d < job->ndim; d++) {
            bool ends = ++index[d] == job->shape[d];
            ssize_t moved = ends ? 1 - job->shape[d] : 1;
            for (int i = 0; i <= job->inputs; i++) at[i] += moved * job->operands[i].strides[d];
            if (!ends) break;
            index[d] = 0;
        }
    }
}

int elementwise_broadcast(const struct elementwise_loop *loop, int count, const uintptr_t *inputs, uintptr_t output) {
    struct job job;
    enum status status = open_job(&job, loop, count, inputs, output);
    if (status || job.count == 0) return status;
    if (!find_blocks(&job)) return UNSUPPORTED;
    run_blocks(&job);
    return OK;
}

int elementwise_apply(const struct elementwise_loop *loop, int count, const uintptr_t *inputs, uintptr_t output) {
    struct job job;
    enum status status = open_job(&job, loop, count, inputs, output);
    if (status || job.count == 0) return status;
    if (job.shape[0] < job.count && job.count >= FEWEST && find_blocks(&job)) run_blocks(&job);
    else run_rows(&job);
    return OK;
}
