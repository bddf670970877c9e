/* Fusions: several elementwise loops, one after the other over blocks that stay in the first caches, and perhaps a sum of
 * what they give. */
#include "core/lanes.h"
#include "core/memory.h"
#include "core/sizes.h"
#include "core/threads.h"
#include "elementwise/operands.h"

#include <stdatomic.h>
#include <stdlib.h>

enum {
    MOST_OPERANDS = FUSED_INPUTS + FUSED_OUTPUTS,
    LONG_ROW = 512,       /* elements; from so many on a block is of one row */
    STRIP = 8,            /* blocks of neighbouring columns that one thread takes */
    PARTS = 16,           /* at most so many are the rows cut into, where strips are few */
    PART = 1 << 14,       /* elements that are worth a part */
};

struct job {
    const struct fusion *fusion;
    fused_span compiled;
    struct operand operands[MOST_OPERANDS]; /* inputs, then outputs */
    bool direct[MOST_OPERANDS];             /* outputs whose dense blocks may be written before inputs are read */
    int ndim; /* the loops, the innermost first; at least 2 */
    ssize_t shape[MAX_DIMS];
    bool reduced[MAX_DIMS];
    ssize_t columns, rows, strip, strips, row_blocks; /* of blocks: see elementwise_broadcast.c */
    double *partial; /* sums: of strips of rows, or of columns of parts */
    ssize_t results, each, apart, parts, count; /* each: partial sums that lie together; apart: how often they do */
    char *sums;
    atomic_bool failed; /* for want of memory */
};

/* What a thread computes in: the buffers of inputs, and a place for each value. */
struct scratch {
    struct buffer *buffers;
    char *places[FUSED_PLACES];
    char *memory;
};

/* -- blocks -- */
static void round_halves(int dtype, ssize_t n, char *floats) {
    uint16_t halves[BLOCK / sizeof(float)];
    if (dtype == FLOAT16) narrow_float16(n, floats, halves), widen_float16(n, halves, floats);
    else narrow_bfloat16(n, floats, halves), widen_bfloat16(n, halves, floats);
}

#define CONVERT(From, To) \
    for (ssize_t i = 0; i < n; i++) ((To *)to)[i] = (To)((const From *)from)[i]

/* n elements of another type; bool values are 0 or 1 whatever their bytes. */
static void convert(const struct fused_step *step, ssize_t n, const char *from, char *to) {
    if (step->from == BOOL && step->to == FLOAT32)
        for (ssize_t i = 0; i < n; i++) ((float *)to)[i] = from[i] != 0;
    else if (step->from == BOOL)
        for (ssize_t i = 0; i < n; i++) ((double *)to)[i] = from[i] != 0;
    else if (step->from == FLOAT32 && step->to == FLOAT64) CONVERT(float, double);
    else if (step->from == FLOAT64 && step->to == FLOAT32) CONVERT(double, float);
    else if (from != to) memcpy(to, from, (size_t)n * size_of(step->to));
}

static void run_steps(const struct fusion *fusion, ssize_t n, char *const *places) {
    for (int i = 0; i < fusion->steps; i++) {
        const struct fused_step *step = fusion->step + i;
        char *in[5], *result = places[step->result];
        for (int j = 0; j < 5; j++) in[j] = places[step->operands[j]];
        if (step->loop) step->loop->span(n, in, result);
        else convert(step, n, in[0], result);
        if (step->rounded != NO_DTYPE) round_halves(step->rounded, n, result);
    }
}

static bool open_scratch(struct scratch *s, const struct fusion *fusion) {
    ssize_t count = fusion->inputs + fusion->blocks;
    s->memory = allocate_items(count, sizeof(struct buffer));
    s->buffers = (struct buffer *)s->memory;
    if (!s->memory) return false;
    for (int i = 0; i < fusion->inputs; i++) s->buffers[i].from = NULL;
    for (int i = 0; i < fusion->numbers; i++) s->places[fusion->inputs + i] = (char *)(fusion->number + i);
    for (int i = 0; i < fusion->blocks; i++)
        s->places[fusion->inputs + fusion->numbers + i] = s->buffers[fusion->inputs + i].elements;
    return true;
}

/* Compute a block, whose part of each operand lies at `at`; returns the elements that are summed, if any are. */
static const char *run_block(const struct job *job, ssize_t rows, ssize_t columns, char *const *at, struct scratch *s) {
    const struct fusion *fusion = job->fusion;
    int inputs = fusion->inputs;
    char *places[FUSED_PLACES];
    memcpy(places, s->places, (size_t)(inputs + fusion->numbers + fusion->blocks) * sizeof *places);
    for (int i = 0; i < inputs; i++) places[i] = read_block(job->operands + i, rows, columns, at[i], s->buffers + i);
    bool direct[FUSED_OUTPUTS];
    for (int i = 0; i < fusion->outputs; i++) {
        direct[i] = job->direct[inputs + i] && is_dense(job->operands + inputs + i, rows, columns);
        if (direct[i]) places[fusion->output_places[i]] = at[inputs + i];
    }
    if (job->compiled) job->compiled(rows * columns, places);
    else run_steps(fusion, rows * columns, places);
    for (int i = 0; i < fusion->outputs; i++)
        if (!direct[i])
            write_block(job->operands + inputs + i, rows, columns, places[fusion->output_places[i]], at[inputs + i]);
    return fusion->summed < 0 ? NULL : places[fusion->summed];
}

/* -- sums -- */
static double sum_of(const char *values, ssize_t n, int dtype) {
    double total = 0;
    if (dtype == FLOAT64) {
        const double *x = (const double *)values;
        double part[8] = {0};
        ssize_t i = 0;
        for (; i + 8 <= n; i += 8)
            for (int k = 0; k < 8; k++) part[k] += x[i + k];
        for (int k = 0; k < 8; k++) total += part[k];
        for (; i < n; i++) total += x[i];
        return total;
    }
    const float *x = (const float *)values;
    lanes_f32 part[4] = {0}, zero = {0};
    ssize_t i = 0;
    for (; i + 4 * LANES_f32 <= n; i += 4 * LANES_f32)
        for (int v = 0; v < 4; v++) part[v] += load_f32(x + i + v * LANES_f32);
    for (; i < n; i += LANES_f32) part[0] += load_first_f32(x + i, n - i, zero);
    return (double)sum_lanes_f32((part[0] + part[1]) + (part[2] + part[3]));
}

typedef float some_floats __attribute__((vector_size(LANES_BYTES / 2), aligned(sizeof(float)), may_alias));

/* Add rows, of so many columns each, to totals. */
static void add_rows_to(double *totals, const char *values, ssize_t rows, ssize_t columns, int dtype) {
    const double *x = (const double *)values;
    const float *y = (const float *)values;
    bool wide = dtype == FLOAT64;
    ssize_t i = 0;
    for (; i + LANES_f64 <= columns; i += LANES_f64) {
        lanes_f64 total = load_f64(totals + i);
        if (wide)
            for (ssize_t r = 0; r < rows; r++) total += load_f64(x + r * columns + i);
        else
            for (ssize_t r = 0; r < rows; r++)
                total += __builtin_convertvector(*(const some_floats *)(y + r * columns + i), lanes_f64);
        store_f64(totals + i, total);
    }
    for (; i < columns; i++)
        for (ssize_t r = 0; r < rows; r++) totals[i] += wide ? x[r * columns + i] : (double)y[r * columns + i];
}

/* The type in which the summed values are held. */
static int held(const struct fusion *fusion) { return fusion->sum_type == FLOAT64 ? FLOAT64 : FLOAT32; }

static void write_sum(const struct job *job, ssize_t i, double total) {
    int dtype = job->fusion->sum_type;
    if (job->fusion->mean) total /= (double)job->count;
    if (dtype == FLOAT64) ((double *)job->sums)[i] = total;
    else if (dtype == FLOAT32) ((float *)job->sums)[i] = (float)total;
    else ((uint16_t *)job->sums)[i] = dtype == FLOAT16 ? float16_bits((float)total) : bfloat16_bits((float)total);
}

/* -- walks: over strips of blocks, and over columns that are summed -- */
static void start(const struct job *job, char **at) {
    for (int i = 0; i < job->fusion->inputs + job->fusion->outputs; i++) at[i] = job->operands[i].data;
}

static void move(const struct job *job, char **at, int d, ssize_t steps) {
    for (int i = 0; i < job->fusion->inputs + job->fusion->outputs; i++) at[i] += steps * job->operands[i].strides[d];
}

static void run_strips(void *context, ssize_t begin, ssize_t end) {
    struct job *job = context;
    struct scratch scratch;
    if (!open_scratch(&scratch, job->fusion)) {
        atomic_store(&job->failed, true);
        return;
    }
    int dtype = held(job->fusion);
    ssize_t size = (ssize_t)size_of((enum dtype)dtype);
    for (ssize_t item = begin; item < end; item++) {
        ssize_t strip = item % job->strips, column = strip * job->strip, left = item / job->strips;
        ssize_t row = left % job->row_blocks * job->rows;
        char *at[MOST_OPERANDS];
        left /= job->row_blocks;
        double *totals = job->partial ? job->partial + (left * job->shape[1] + row) * job->strips + strip : NULL;
        start(job, at);
        move(job, at, 0, column);
        move(job, at, 1, row);
        for (int d = 2; d < job->ndim; left /= job->shape[d++]) move(job, at, d, left % job->shape[d]);
        ssize_t rows = smaller(job->shape[1] - row, job->rows), stop = smaller(job->shape[0], column + job->strip);
        for (ssize_t r = 0; totals && r < rows; r++) totals[r * job->strips] = 0;
        for (ssize_t columns; column < stop; column += columns) {
            columns = smaller(stop - column, job->columns);
            const char *values = run_block(job, rows, columns, at, &scratch);
            for (ssize_t r = 0; totals && r < rows; r++)
                totals[r * job->strips] += sum_of(values + r * columns * size, columns, dtype);
            move(job, at, 0, columns);
        }
    }
    release(scratch.memory);
}

static void finish_rows(void *context, ssize_t begin, ssize_t end) {
    const struct job *job = context;
    for (ssize_t i = begin; i < end; i++) {
        double total = 0;
        for (ssize_t j = 0; j < job->apart; j++)
            for (ssize_t k = 0; k < job->each; k++) total += job->partial[(j * job->results + i) * job->each + k];
        write_sum(job, i, total);
    }
}

/* The sums of columns over some of the rows, for all positions in the kept dimensions. */
static void run_columns(void *context, ssize_t begin, ssize_t end) {
    struct job *job = context;
    struct scratch scratch;
    if (!open_scratch(&scratch, job->fusion)) {
        atomic_store(&job->failed, true);
        return;
    }
    int dtype = held(job->fusion), first_reduced = 1;
    while (!job->reduced[first_reduced]) first_reduced++;
    ssize_t kept = job->results / job->shape[0], all = job->count;
    for (ssize_t item = begin; item < end; item++) {
        ssize_t column = item % job->strips * job->strip, left = item / job->strips;
        ssize_t outer = left % kept, part = left / kept, columns = smaller(job->shape[0] - column, job->columns);
        double *totals = job->partial + part * job->results + outer * job->shape[0] + column;
        memset(totals, 0, (size_t)columns * sizeof *totals);
        char *base[MOST_OPERANDS], *at[MOST_OPERANDS];
        start(job, base);
        move(job, base, 0, column);
        for (int d = 1; d < first_reduced; outer /= job->shape[d++]) move(job, base, d, outer % job->shape[d]);
        ssize_t stop = all * (part + 1) / job->parts;
        for (ssize_t r = all * part / job->parts, rows; r < stop; r += rows) {
            rows = first_reduced > 1 ? 1 : smaller(smaller(job->rows, job->shape[1] - r % job->shape[1]), stop - r);
            memcpy(at, base, sizeof at);
            ssize_t index = r;
            for (int d = first_reduced; d < job->ndim; index /= job->shape[d++]) move(job, at, d, index % job->shape[d]);
            const char *values = run_block(job, rows, columns, at, &scratch);
            add_rows_to(totals, values, rows, columns, dtype);
        }
    }
    release(scratch.memory);
}

static void finish_columns(void *context, ssize_t begin, ssize_t end) {
    const struct job *job = context;
    for (ssize_t i = begin; i < end; i++) {
        double total = 0;
        for (ssize_t k = 0; k < job->parts; k++) total += job->partial[k * job->results + i];
        write_sum(job, i, total);
    }
}

/* -- loops -- */
/* The shape to which the inputs broadcast, from the last dimension on; -1 if they do not. */
static int joint_shape(const array *arrays, int count, ssize_t *shape) {
    int ndim = 0;
    for (int i = 0; i < count; i++) {
        array a = arrays[i];
        if (a->ndim < 0 || a->ndim > MAX_DIMS) return -1;
        for (; ndim < a->ndim; ndim++) shape[ndim] = 1;
        for (int d = 0; d < a->ndim; d++) {
            ssize_t size = a->shape[a->ndim - 1 - d];
            if (size == 1 || size == shape[d]) continue;
            if (shape[d] != 1) return -1;
            shape[d] = size;
        }
    }
    return ndim;
}

/* Make the loops of a shape, given from the last dimension on: as few and as long as possible. */
static void find_loops(struct job *job, const array *arrays, int ndim, const ssize_t *shape) {
    int operands = job->fusion->inputs + job->fusion->outputs, last = -1;
    for (int d = 0; d < ndim; d++) {
        if (shape[d] == 1) continue;
        bool reduced = job->fusion->dims >> (ndim - 1 - d) & 1, joined = last >= 0 && job->reduced[last] == reduced;
        ssize_t strides[MOST_OPERANDS];
        for (int i = 0; i < operands; i++) {
            array a = arrays[i];
            int own = a->ndim - 1 - d;
            strides[i] = own < 0 || a->shape[own] == 1 ? 0 : a->strides[own];
            joined = joined && strides[i] == job->shape[last] * job->operands[i].strides[last];
        }
        if (joined) {
            job->shape[last] *= shape[d];
            continue;
        }
        job->shape[++last] = shape[d];
        job->reduced[last] = reduced;
        for (int i = 0; i < operands; i++) job->operands[i].strides[last] = strides[i];
    }
    bool sums = job->fusion->summed >= 0;
    for (int d = 0; d <= last; d++) sums &= !job->reduced[d];
    while (last < 1 || sums) { /* of one element: what is summed over, if nothing else is */
        job->shape[++last] = 1;
        job->reduced[last] = job->fusion->summed >= 0;
        for (int i = 0; i < operands; i++) job->operands[i].strides[last] = last ? 0 : job->operands[i].size;
        sums = false;
    }
    job->ndim = last + 1;
}

static void find_blocks(struct job *job) {
    ssize_t n = job->shape[0], most = 8192 / job->fusion->widest;
    job->columns = smaller(n, most);
    job->rows = smaller(job->shape[1], n < LONG_ROW ? most / job->columns : 1);
    job->strip = STRIP * job->columns;
    job->strips = (n + job->strip - 1) / job->strip;
    job->row_blocks = (job->shape[1] + job->rows - 1) / job->rows;
}

static enum status sum_rows(struct job *job, ssize_t cost) {
    ssize_t rows = 1, items = job->strips * job->row_blocks;
    for (int d = 1; d < job->ndim; d++) rows *= job->shape[d];
    for (int d = 2; d < job->ndim; d++) items *= job->shape[d];
    if (job->fusion->summed >= 0) { /* of rows, over dimensions before the kept ones and after them */
        job->each = job->strips;
        for (int d = 1; d < job->ndim && job->reduced[d]; d++) job->each *= job->shape[d];
        job->apart = rows / job->results * job->strips / job->each;
        if (!(job->partial = allocate_items(size_times(rows, job->strips), sizeof(double)))) return NO_MEMORY;
    }
    parallel_for(items, grain_for(cost * job->rows * smaller(job->strip, job->shape[0])), run_strips, job);
    if (job->partial && !job->failed) parallel_for(job->results, grain_for(job->apart * job->each), finish_rows, job);
    return OK;
}

static enum status sum_columns(struct job *job, ssize_t cost) {
    job->strip = job->columns;
    job->strips = (job->shape[0] + job->strip - 1) / job->strip;
    job->parts = smaller(size_times(job->results, job->count) / PART, smaller(PARTS / job->strips, job->count));
    if (job->parts < 1) job->parts = 1;
    if (!(job->partial = allocate_items(size_times(job->parts, job->results), sizeof(double)))) return NO_MEMORY;
    ssize_t items = job->parts * job->strips * (job->results / job->shape[0]);
    parallel_for(items, grain_for(cost * job->columns * (job->count / job->parts)), run_columns, job);
    if (!job->failed) parallel_for(job->results, grain_for(job->parts), finish_columns, job);
    return OK;
}

/* Of no elements: sums are 0, means are not numbers. */
static enum status sum_nothing(struct job *job) {
    for (ssize_t i = 0; i < job->results; i++) write_sum(job, i, 0);
    return OK;
}

static enum status run(struct job *job, const array *arrays, int ndim, const ssize_t *shape) {
    const struct fusion *fusion = job->fusion;
    ssize_t elements = 1, cost = fusion->cost + fusion->inputs + fusion->outputs;
    job->results = job->count = 1;
    for (int d = 0; d < ndim; d++) {
        elements *= shape[d];
        *(fusion->dims >> (ndim - 1 - d) & 1 ? &job->count : &job->results) *= shape[d];
    }
    if (!elements) return fusion->summed < 0 ? OK : sum_nothing(job);
    find_loops(job, arrays, ndim, shape);
    find_blocks(job);
    enum status status = fusion->summed < 0 || job->reduced[0] ? sum_rows(job, cost) : sum_columns(job, cost);
    release(job->partial);
    return status != OK ? status : job->failed ? NO_MEMORY : OK;
}

int fused_run(const struct fusion *fusion, int count, const uintptr_t *addresses) {
    int inputs = fusion->inputs, operands = inputs + fusion->outputs;
    if (count != operands + (fusion->summed >= 0)) return WRONG_SHAPE;
    if (!are_writable((size_t)(count - inputs), addresses + inputs)) return READ_ONLY;
    struct job job = {.fusion = fusion, .compiled = __atomic_load_n(&fusion->compiled, __ATOMIC_ACQUIRE)};
    array arrays[MOST_OPERANDS];
    for (int i = 0; i < operands; i++) {
        array a = arrays[i] = ARRAY(addresses[i]);
        int dtype = i < inputs ? fusion->input_types[i] : fusion->output_types[i - inputs];
        if (!a) return WRONG_SHAPE;
        if ((int)dtype_of(a) != dtype) return WRONG_DTYPE;
        struct operand *o = job.operands + i;
        o->dtype = dtype, o->size = (ssize_t)size_of((enum dtype)dtype), o->data = a->data;
        o->widen = dtype == FLOAT16 || dtype == BFLOAT16;
        if (!is_aligned(a, o->size < 8 ? o->size : 8)) return UNSUPPORTED;
    }
    ssize_t shape[MAX_DIMS];
    int ndim = joint_shape(arrays, inputs, shape);
    if (ndim < 0) return WRONG_SHAPE;
    for (int i = inputs; i < operands; i++) {
        array out = arrays[i];
        if (out->ndim != ndim) return WRONG_SHAPE;
        for (int d = 0; d < ndim; d++)
            if (out->shape[ndim - 1 - d] != shape[d]) return WRONG_SHAPE;
        if (!is_contiguous(out)) return UNSUPPORTED;
        job.direct[i] = !job.operands[i].widen;
        for (int j = 0; j < inputs; j++) {
            if (!is_apart(arrays[j], out)) return UNSUPPORTED;
            job.direct[i] &= arrays[j]->data != out->data;
        }
        for (int j = inputs; j < i; j++)
            if (overlap(arrays[j], out)) return UNSUPPORTED;
    }
    if (fusion->summed >= 0) {
        array sums = ARRAY(addresses[operands]);
        ssize_t kept = 1;
        for (int d = 0; d < ndim; d++)
            if (!(fusion->dims >> (ndim - 1 - d) & 1)) kept *= shape[d];
        if (!sums || (int)dtype_of(sums) != fusion->sum_type) return WRONG_DTYPE;
        if (count_of(sums) != kept || !is_contiguous(sums)) return WRONG_SHAPE;
        job.sums = sums->data;
    }
    return run(&job, arrays, ndim, shape);
}

/* -- programs -- */
struct fusion *fusion_new(const struct fusion *program) {
    struct fusion *made = malloc(sizeof *made);
    if (made) *made = *program;
    return made;
}

void fusion_compiled(struct fusion *fusion, uintptr_t span) {
    __atomic_store_n(&fusion->compiled, (fused_span)span, __ATOMIC_RELEASE);
}

/* Whether n elements hold the same bits in two places, or NaN in both. */
static bool same(const char *a, const char *b, ssize_t n, int dtype) {
    for (ssize_t i = 0; i < n; i++) {
        if (dtype == FLOAT32) {
            const float *x = (const float *)a + i, *y = (const float *)b + i;
            if (bits_f32(*x) != bits_f32(*y) && !(*x != *x && *y != *y)) return false;
        } else if (dtype == FLOAT64) {
            const double *x = (const double *)a + i, *y = (const double *)b + i;
            if (bits_f64(*x) != bits_f64(*y) && !(*x != *x && *y != *y)) return false;
        } else if (a[i] != b[i]) return false;
    }
    return true;
}

int fusion_agrees(const struct fusion *fusion, uintptr_t span, int count, const uintptr_t *samples) {
    struct scratch steps, compiled;
    ssize_t n = BLOCK / fusion->widest - 3; /* not a whole number of vectors */
    bool agree = count == fusion->inputs && open_scratch(&steps, fusion);
    if (!agree) return false;
    if (!open_scratch(&compiled, fusion)) {
        release(steps.memory);
        return false;
    }
    for (int i = 0; i < fusion->inputs; i++) {
        array a = ARRAY(samples[i]);
        agree = agree && a && count_of(a) >= n && is_contiguous(a);
        if (agree) steps.places[i] = compiled.places[i] = a->data;
    }
    if (agree) {
        run_steps(fusion, n, steps.places);
        ((fused_span)span)(n, compiled.places);
    }
    for (int i = 0; i < fusion->outputs && agree; i++) {
        int dtype = fusion->output_types[i], place = fusion->output_places[i];
        if (dtype == FLOAT16 || dtype == BFLOAT16) dtype = FLOAT32;
        agree = same(steps.places[place], compiled.places[place], n, dtype);
    }
    if (fusion->summed >= 0 && agree)
        agree = same(steps.places[fusion->summed], compiled.places[fusion->summed], n, held(fusion));
    release(steps.memory);
    release(compiled.memory);
    return agree;
}
