/* Elementwise loops over operands that broadcast or are strided: blocks of rows, in parallel. */
#include "core/threads.h"
#include "elementwise/operands.h"

enum {
    MOST_OPERANDS = 6,
    BESIDE = 256,        /* columns that are worth a call of their own */
    LONG_ROW = 512,      /* elements; from so many on a block is of one row */
    REPEATED = 512,      /* columns of a block if repeated elements have to be written out, once per strip */
    SMALLEST_BLOCK = 64, /* elements; smaller ones cost more than NumPy's iterator does */
    TILE_ROWS = 32,      /* of a block some of whose operands are transposed */
    STRIP = 8,           /* blocks */
    FEWEST = 1 << 8,     /* elements of a result that is worth the walk by blocks */
};

struct job {
    const struct elementwise_loop *loop;
    int inputs; /* the operands, before the result */
    struct operand operands[MOST_OPERANDS];
    ssize_t count; /* elements of the result */
    int ndim;      /* the loops, the innermost first; at least 2 */
    ssize_t shape[MAX_DIMS];
    ssize_t columns, rows;      /* of a block */
    bool beside;                /* the second input is one element in each row, and the loop has a way for that */
    ssize_t strip;              /* columns of neighbouring blocks, which have the repeated elements in common */
    ssize_t strips, row_blocks; /* so many cover the inner two loops */
};

/* The rows of a block whose second input is one element in each. */
static void run_rows_beside(const struct job *job, ssize_t rows, ssize_t columns, char *x, const char *y,
                            char *results) {
    const struct operand *first = job->operands, *second = first + 1, *result = first + 2;
    ssize_t step = columns * width_of(first), result_step = columns * width_of(result);
    for (ssize_t i = 0; i < rows; i++) {
        float wide;
        char *in[] = {x + i * step, (char *)y + i * second->strides[1]};
        if (second->widen) {
            (second->dtype == FLOAT16 ? widen_float16 : widen_bfloat16)(1, in[1], &wide);
            in[1] = (char *)&wide;
        }
        job->loop->beside(columns, in, results + i * result_step);
    }
}

static void run_block(const struct job *job, ssize_t rows, ssize_t columns, char *const *at, struct buffer *buffers) {
    int inputs = job->inputs;
    const struct operand *result = job->operands + inputs;
    char *in[MOST_OPERANDS];
    for (int i = 0; i < inputs - job->beside; i++)
        in[i] = read_block(job->operands + i, rows, columns, at[i], buffers + i);
    bool direct = !result->widen && is_dense(result, rows, columns);
    char *results = direct ? at[inputs] : buffers[inputs].elements;
    if (job->beside) run_rows_beside(job, rows, columns, in[0], at[1], results);
    else run_span(job->loop, rows * columns, in, results);
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
    job->beside = job->loop->beside && !job->loop->halves && n >= BESIDE && job->operands[1].strides[0] == 0 && job->operands[0].strides[0];
    for (int i = 0; i <= job->inputs; i++) {
        const struct operand *o = job->operands + i;
        ssize_t size = width_of(o);
        widest = size > widest ? size : widest;
        transposed |= o->strides[1] == o->size && o->strides[0] != o->size && o->strides[0] != 0;
        repeated |= o->strides[0] == 0 && !(job->beside && i == 1);
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
        bool number = i >= loop->tensors && i < count;
        job->operands[i].widen = half && widens(loop, number);
    }
    job->count = count_of(out);
    return job->count == 0 || find_loops(job, arrays) ? OK : UNSUPPORTED;
}

static void run_blocks(struct job *job) {
    ssize_t strips = job->strips * job->row_blocks, elements = job->rows * smaller(job->strip, job->shape[0]);
    for (int d = 2; d < job->ndim; d++) strips *= job->shape[d];
    parallel_for(strips, vector_grain_for((job->loop->cost + 1) * elements), run_strips, job);
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

int elementwise_apply(const struct elementwise_loop *loop, int count, const uintptr_t *inputs, uintptr_t output) {
    struct job job;
    enum status status = open_job(&job, loop, count, inputs, output);
    if (status || job.count == 0) return status;
    if (job.shape[0] < job.count && job.count >= FEWEST && find_blocks(&job)) run_blocks(&job);
    else run_rows(&job);
    return OK;
}
