/* Reductions over any dimensions of arrays of any strides.
 *
 * The dimensions are brought to one of two forms, rows or columns whose elements lie next to each other, and the
 * work is shared by results, or, where these are few, by blocks of elements; the blocks depend on the sizes alone,
 * so that results do not depend on the number of threads. */
#include "reduction/reduction.h"

#include "core/memory.h"
#include "core/sizes.h"
#include "core/threads.h"
#include "core/widening.h"

#include <stdlib.h>
#include <string.h>

enum {
    BLOCK = 1 << 16, /* elements worth a block of their own */
    FEW = 16,        /* results that are too few to share the work by */
    NARROW = 64,     /* columns below which several rows are reduced as one */
    PARTS = 3,       /* the most parts of a total */
    WIDENED = 8192,  /* elements of half types at a time, as floats: eight rows of a strip, as reducers take them */
};

/* Sizes and strides (in bytes) of dimensions, outermost first; of kept ones also the step in the output. */
struct dims {
    int n;
    ssize_t size[MAX_DIMS], stride[MAX_DIMS], step[MAX_DIMS];
};

struct plan {
    const struct reducer *reducer;
    struct options options;
    const char *data;
    ssize_t itemsize;
    struct half half;             /* of elements that the reducer takes as floats */
    enum dtype result;
    struct dims kept, reduced;    /* without the dimension that is reduced or walked along as one: */
    ssize_t rows, row_stride;     /* the innermost reduced dimension (stride in elements) */
    ssize_t width, width_step;    /* the innermost kept dimension where that is contiguous (columns), else 1 */
    ssize_t strips, results;      /* strips of columns; kept positions times strips */
    int split;                    /* the reduced dimension that is cut into blocks; reduced.n for the rows */
    ssize_t blocks, block;        /* their number and size */
    char *partial;                /* totals of [results][blocks], if there is more than one block */
    size_t total_size;            /* bytes of one of them */
    char *outputs[2];
};

static void insert(struct dims *dims, int at, ssize_t size, ssize_t stride, ssize_t step) {
    for (int i = dims->n++; i > at; i--) {
        dims->size[i] = dims->size[i - 1];
        dims->stride[i] = dims->stride[i - 1];
        dims->step[i] = dims->step[i - 1];
    }
    dims->size[at] = size;
    dims->stride[at] = stride;
    dims->step[at] = step;
}

/* Joins neighbours that can be walked along as one dimension. */
static void collapse(struct dims *dims) {
    int n = 0;
    for (int i = 0; i < dims->n; i++) {
        if (n && dims->stride[n - 1] == dims->stride[i] * dims->size[i] &&
            dims->step[n - 1] == dims->step[i] * dims->size[i]) {
            dims->size[n - 1] *= dims->size[i];
        } else {
            dims->size[n] = dims->size[i];
            n++;
        }
        dims->stride[n - 1] = dims->stride[i];
        dims->step[n - 1] = dims->step[i];
    }
    dims->n = n;
}

/* Where a reduced dimension belongs: behind those of larger stride; repetitions (stride 0) come first. */
static int place_of(const struct dims *dims, ssize_t stride) {
    int at = dims->n;
    while (at > 0 && (stride == 0 || (dims->stride[at - 1] != 0 && dims->stride[at - 1] < stride))) at--;
    return at;
}

/* The byte offset of position `index` in dimensions. */
static ssize_t offset_of(const struct dims *dims, ssize_t index, ssize_t *output) {
    ssize_t offset = 0;
    *output = 0;
    for (int i = dims->n - 1; i >= 0; i--) {
        ssize_t at = i ? index % dims->size[i] : index;
        if (i) index /= dims->size[i];
        offset += at * dims->stride[i];
        *output += at * dims->step[i];
    }
    return offset;
}

/* -- what a reducer does, of half types by way of float -- */
/* n elements `stride` apart as floats. */
static void widen_elements(const struct plan *plan, ssize_t n, const char *from, ssize_t stride, float *to) {
    enum { PART = 256 };
    uint16_t dense[PART];
    if (stride == 1) plan->half.widen(n, from, to);
    else
        for (ssize_t i = 0; i < n; i += PART) {
            ssize_t length = n - i < PART ? n - i : PART;
            for (ssize_t j = 0; j < length; j++) memcpy(dense + j, from + 2 * (i + j) * stride, 2);
            plan->half.widen(length, dense, to + i);
        }
}

/* Totals grow by a strip of columns, or by one column if `reduce` is the reducer's `row`. */
static void fold(const struct plan *plan, void reduce(const struct strip *, void *), const struct strip *strip,
                 void *totals) {
    if (!plan->half.widen) {
        reduce(strip, totals);
        return;
    }
    float floats[WIDENED];
    struct strip part = *strip;
    for (ssize_t r = 0; r < strip->rows; r += part.rows) {
        const char *from = (const char *)strip->x + 2 * r * strip->stride;
        part.rows = strip->rows - r < WIDENED / strip->width ? strip->rows - r : WIDENED / strip->width;
        part.position = strip->position + r * strip->step;
        part.x = floats;
        part.stride = strip->width;
        if (strip->width == 1) widen_elements(plan, part.rows, from, strip->stride, floats);
        else widen_rows(plan->half, part.rows, strip->width, (const uint16_t *)from, strip->stride, floats);
        reduce(&part, totals);
    }
}

/* Results of floats, and their positions, become those of a plan on half types: n <= STRIP elements, `step` apart. */
static void put_results(const struct plan *plan, ssize_t n, char *const results[2], ssize_t begin, ssize_t step) {
    ssize_t size = (ssize_t)size_of(plan->result);
    if (plan->outputs[0] && plan->result == FLOAT32) {
        uint16_t halves[STRIP];
        plan->half.narrow(n, results[0], halves);
        for (ssize_t j = 0; j < n; j++) ((uint16_t *)plan->outputs[0])[begin + j * step] = halves[j];
    } else if (plan->outputs[0]) {
        for (ssize_t j = 0; j < n; j++)
            memcpy(plan->outputs[0] + (begin + j * step) * size, results[0] + j * size, (size_t)size);
    }
    for (ssize_t j = 0; j < n && plan->outputs[1]; j++)
        ((int64_t *)plan->outputs[1])[begin + j * step] = ((int64_t *)results[1])[j];
}

/* The results of n columns into elements `step` apart. */
static void finish(const struct plan *plan, const void *totals, ssize_t n, ssize_t begin, ssize_t step) {
    if (!plan->half.widen) {
        plan->reducer->finish(totals, n, &plan->options, plan->outputs, begin, step);
        return;
    }
    int64_t values[STRIP], positions[STRIP];
    char *const results[2] = {plan->outputs[0] ? (char *)values : NULL, (char *)positions};
    plan->reducer->finish(totals, n, &plan->options, results, 0, 1);
    put_results(plan, n, results, begin, step);
}

/* Columns of which there are few are reduced as several rows side by side, whose totals are joined. */
static void reduce_columns(const struct plan *plan, struct strip *strip, void *totals) {
    const struct reducer *reducer = plan->reducer;
    ssize_t side = NARROW / strip->width;
    if (side > 1 && strip->stride == strip->width && strip->rows >= 8 * side && !reducer->ordered) {
        _Alignas(64) char wide_totals[8 * PARTS * NARROW];
        struct strip wide = *strip;
        wide.rows /= side;
        wide.stride = wide.width = side * strip->width;
        reducer->start(wide_totals, wide.width);
        fold(plan, reducer->columns, &wide, wide_totals);
        for (ssize_t k = 0; k < side; k++)
            reducer->join(totals, strip->width, strip->width, wide_totals, wide.width, k * strip->width);
        strip->rows -= wide.rows * side;
        strip->x = (const char *)strip->x + wide.rows * wide.stride * plan->itemsize;
    }
    fold(plan, reducer->columns, strip, totals);
}

/* The totals of a block of the elements of one result, or of one strip of columns; returns how many columns. */
static ssize_t reduce_block(const struct plan *plan, ssize_t result, ssize_t block, char *totals, ssize_t *output) {
    ssize_t strips = plan->strips, column = strips > 1 ? result % strips * STRIP : 0, first = block * plan->block;
    const char *x = plan->data + column * plan->itemsize;
    x += offset_of(&plan->kept, strips > 1 ? result / strips : result, output);
    *output += column * plan->width_step;
    struct strip strip = {
        .rows = plan->rows,
        .stride = plan->row_stride,
        .width = plan->width - column < STRIP ? plan->width - column : STRIP,
        .step = 1,
        .options = &plan->options,
    };
    ssize_t outer = 1, size[MAX_DIMS];
    for (int i = 0; i < plan->reduced.n; i++) size[i] = plan->reduced.size[i];
    bool cuts_rows = plan->split == plan->reduced.n;
    ssize_t *cut = cuts_rows ? &strip.rows : &size[plan->split];
    *cut = *cut - first < plan->block ? *cut - first : plan->block;
    x += first * (cuts_rows ? plan->row_stride * plan->itemsize : plan->reduced.stride[plan->split]);
    for (int i = 0; i < plan->reduced.n; i++) outer *= size[i];
    strip.position = first;
    plan->reducer->start(totals, strip.width);
    ssize_t rows = strip.rows;
    for (ssize_t index = 0; index < outer; index++) {
        const char *from = x;
        for (ssize_t i = plan->reduced.n - 1, rest = index; i >= 0; rest /= size[i], i--)
            from += rest % size[i] * plan->reduced.stride[i];
        strip.x = from;
        strip.rows = rows;
        if (plan->width > 1) reduce_columns(plan, &strip, totals);
        else fold(plan, plan->reducer->row, &strip, totals);
    }
    return strip.width;
}

/* The results of rows that lie one after another. */
static void reduce_rows(const struct plan *plan, ssize_t begin, ssize_t end) {
    const struct reducer *reducer = plan->reducer;
    ssize_t stride = plan->kept.n ? plan->kept.stride[0] : 0;
    struct strip strip = {.x = plan->data + begin * stride, .rows = plan->rows, .stride = plan->row_stride,
                          .width = 1, .step = 1, .options = &plan->options};
    ssize_t together = strip.rows ? WIDENED / strip.rows : 0; /* rows that are widened at a time */
    if (together > STRIP) together = STRIP;
    if (reducer->rows && !plan->half.widen)
        reducer->rows(&strip, stride / plan->itemsize, end - begin, plan->outputs, begin);
    else if (reducer->rows && together)
        for (ssize_t i = begin, count; i < end; i += count) {
            float floats[WIDENED];
            int64_t values[STRIP], positions[STRIP];
            char *const results[2] = {plan->outputs[0] ? (char *)values : NULL, (char *)positions};
            count = end - i < together ? end - i : together;
            struct strip part = strip;
            for (ssize_t r = 0; r < count; r++, strip.x = (const char *)strip.x + stride)
                widen_elements(plan, strip.rows, strip.x, strip.stride, floats + r * strip.rows);
            part.x = floats, part.stride = 1;
            reducer->rows(&part, strip.rows, count, results, 0);
            put_results(plan, count, results, i, 1);
        }
    else
        for (ssize_t i = begin; i < end; i++, strip.x = (const char *)strip.x + stride) {
            _Alignas(8) char totals[8 * PARTS];
            reducer->start(totals, 1);
            fold(plan, reducer->row, &strip, totals);
            finish(plan, totals, 1, i, 1);
        }
}

static void reduce_results(void *context, ssize_t begin, ssize_t end) {
    const struct plan *plan = context;
    _Alignas(64) char totals[8 * PARTS * STRIP];
    if (plan->width == 1 && plan->kept.n <= 1 && !plan->reduced.n) {
        reduce_rows(plan, begin, end);
        return;
    }
    for (ssize_t result = begin; result < end; result++) {
        ssize_t output, width = reduce_block(plan, result, 0, totals, &output);
        finish(plan, totals, width, output, plan->width_step);
    }
}

static void reduce_partial(void *context, ssize_t begin, ssize_t end) {
    const struct plan *plan = context;
    for (ssize_t i = begin; i < end; i++) {
        ssize_t output;
        reduce_block(plan, i / plan->blocks, i % plan->blocks, plan->partial + i * plan->total_size, &output);
    }
}

static enum status reduce_blocks(struct plan *plan, ssize_t cost) {
    ssize_t widest = plan->width < STRIP ? plan->width : STRIP;
    plan->total_size = 8 * plan->reducer->parts * widest;
    plan->partial = allocate_items(size_times(plan->results, plan->blocks), plan->total_size);
    if (!plan->partial) return NO_MEMORY;
    parallel_for(plan->results * plan->blocks, vector_grain_for(cost), reduce_partial, plan);
    for (ssize_t result = 0; result < plan->results; result++) {
        char *totals = plan->partial + result * plan->blocks * plan->total_size;
        ssize_t column = result % plan->strips * STRIP, output;
        ssize_t width = plan->width - column < STRIP ? plan->width - column : STRIP;
        offset_of(&plan->kept, result / plan->strips, &output);
        for (ssize_t block = 1; block < plan->blocks; block++)
            plan->reducer->join(totals, width, width, totals + block * plan->total_size, width, 0);
        finish(plan, totals, width, output + column * plan->width_step, plan->width_step);
    }
    release(plan->partial);
    return OK;
}

/* Sorts the dimensions into kept and reduced ones and takes out the innermost. */
static void arrange(struct plan *plan, array x, uint64_t mask) {
    struct dims *kept = &plan->kept, *reduced = &plan->reduced;
    ssize_t step = 1;
    kept->n = reduced->n = 0;
    for (int i = x->ndim - 1; i >= 0; i--) {
        ssize_t size = x->shape[i], stride = x->strides[i];
        if (size == 1) continue;
        if (!(mask >> i & 1)) {
            insert(kept, 0, size, stride, step);
            step *= size;
        } else if (plan->reducer->ordered) {
            insert(reduced, 0, size, stride, 0);
        } else {
            if (stride < 0) {
                plan->data += (size - 1) * stride;
                stride = -stride;
            }
            insert(reduced, place_of(reduced, stride), size, stride, 0);
        }
    }
    collapse(kept);
    collapse(reduced);
    if (!reduced->n) insert(reduced, 0, 1, plan->itemsize, 0);
    int inner = --reduced->n;
    plan->rows = reduced->size[inner];
    plan->row_stride = reduced->stride[inner] / plan->itemsize;
    plan->width = plan->width_step = 1;
    if (plan->row_stride == 1 && plan->rows > 1) return;
    for (int i = 0; i < kept->n; i++) {
        if (kept->stride[i] != plan->itemsize) continue;
        plan->width = kept->size[i];
        plan->width_step = kept->step[i];
        for (kept->n--; i < kept->n; i++) {
            kept->size[i] = kept->size[i + 1];
            kept->stride[i] = kept->stride[i + 1];
            kept->step[i] = kept->step[i + 1];
        }
    }
}

static enum status run(struct plan *plan) {
    plan->strips = (plan->width + STRIP - 1) / STRIP;
    plan->results = plan->strips;
    for (int i = 0; i < plan->kept.n; i++) plan->results *= plan->kept.size[i];
    ssize_t longest = plan->rows, cost = (ssize_t)plan->options.count * (plan->width < STRIP ? plan->width : STRIP);
    plan->split = plan->reduced.n;
    for (int i = 0; i < plan->reduced.n; i++)
        if (plan->reduced.size[i] > longest) longest = plan->reduced.size[plan->split = i];
    plan->blocks = plan->results < FEW ? cost / BLOCK : 1;
    if (plan->blocks > FEW) plan->blocks = FEW + (plan->blocks - FEW) / FEW;
    if (plan->blocks > longest) plan->blocks = longest;
    if (plan->blocks < 2) plan->blocks = 1;
    plan->block = longest ? (longest + plan->blocks - 1) / plan->blocks : 1;
    plan->blocks = longest ? (longest + plan->block - 1) / plan->block : 1;
    if (plan->blocks > 1) return reduce_blocks(plan, cost / plan->blocks);
    parallel_for(plan->results, vector_grain_for(cost), reduce_results, plan);
    return OK;
}

/* Whether an output has as many elements as are kept, in row-major order. */
static bool is_result(array output, enum dtype dtype, ssize_t count) {
    return dtype_of(output) == dtype && count_of(output) == count && is_contiguous(output);
}

static enum status reduce_into(int reduction, array x, uint64_t mask, double parameter, array values, array indices) {
    enum dtype dtype;
    struct plan plan;
    plan.reducer = reducer_of((enum reduction)reduction, computed_in(dtype_of(x)), &dtype);
    plan.half = half_of(dtype_of(x));
    plan.result = dtype;
    if (plan.half.widen && dtype == FLOAT32) dtype = dtype_of(x);
    if (!plan.reducer || plan.reducer->ordered != (indices != NULL)) return WRONG_DTYPE;
    if (x->ndim > MAX_DIMS) return WRONG_SHAPE;
    ssize_t kept = 1, reduced = 1;
    if (!mask) mask = ~(uint64_t)0;
    for (int i = 0; i < x->ndim; i++) *(mask >> i & 1 ? &reduced : &kept) *= x->shape[i];
    if (values && !is_result(values, dtype, kept)) return WRONG_SHAPE;
    if (indices && !is_result(indices, INT64, kept)) return WRONG_SHAPE;
    if (!reduced && !plan.reducer->identity) return WRONG_SHAPE;
    if (!kept) return OK;
    plan.options = (struct options){reduced, reduction == REDUCE_MEAN ? (double)reduced : 1, parameter};
    plan.data = x->data;
    plan.itemsize = (ssize_t)size_of(dtype_of(x));
    plan.outputs[0] = values ? values->data : NULL;
    plan.outputs[1] = indices ? indices->data : NULL;
    for (int i = 0; i < x->ndim; i++)
        if (x->strides[i] % plan.itemsize) return WRONG_SHAPE;
    arrange(&plan, x, mask);
    if (plan.reducer->ordered && plan.reduced.n) return UNSUPPORTED; /* positions count along one stride */
    return run(&plan);
}

int reduce(int reduction, uintptr_t input, uint64_t dims, double parameter, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    return reduce_into(reduction, ARRAY(input), dims, parameter, ARRAY(output), NULL);
}

int argreduce(int reduction, uintptr_t input, uint64_t dims, uintptr_t values, uintptr_t indices) {
    if (!WRITABLE(values, indices)) return READ_ONLY;
    return reduce_into(reduction, ARRAY(input), dims, 0, ARRAY(values), ARRAY(indices));
}
