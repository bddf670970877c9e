/* The gradient of padding with an array's own elements: each row is the sum of the padded rows that stand for it. */
#include "core/array.h"
#include "core/memory.h"
#include "core/sizes.h"
#include "core/threads.h"
#include "core/widening.h"
#include "kernels.h"

#include <stdatomic.h>
#include <string.h>

struct folded_dimension {
    ssize_t size, padded, before; /* `before` places come before the first element, or elements are cut if it is negative */
    enum padding_mode mode;
    ssize_t stride;              /* of the padded array, in elements */
    ssize_t *places, *first;     /* those of element i: from places[first[i]] to places[first[i + 1] - 1] */
};

struct folding {
    int ndim;
    struct folded_dimension dimensions[MAX_DIMS];
    const void *x;
    void *y;
    struct half half;
    atomic_bool no_memory;
};

/* How many elements go round. */
static ssize_t period_of(const struct folded_dimension *d) {
    ssize_t after = d->padded - d->size - d->before;
    return d->size + (d->before < 0 ? d->before : 0) + (after < 0 ? after : 0);
}

/* Which element stands at a place (corefw/declarations/padding.py). */
static ssize_t position_of(const struct folded_dimension *d, ssize_t place) {
    ssize_t i = place - d->before, last = d->size - 1;
    if (d->mode == REPLICATED) return i < 0 ? 0 : i > last ? last : i;
    if (d->mode == REFLECTED) {
        i = i < 0 ? -i : i;
        return i > last ? 2 * last - i : i;
    }
    ssize_t first = d->before < 0 ? -d->before : 0, period = period_of(d), rest = (i - first) % period;
    return (rest < 0 ? rest + period : rest) + first;
}

/* -- the rows that are added up: of each dimension but the last the places of an element, in order -- */
static bool list_places(struct folded_dimension *d) {
    d->first = allocate_items(size_plus(size_plus(d->size, 2), d->padded), sizeof *d->first);
    if (!d->first) return false;
    d->places = d->first + d->size + 2;
    memset(d->first, 0, (size_t)(d->size + 2) * sizeof *d->first);
    for (ssize_t p = 0; p < d->padded; p++) d->first[position_of(d, p) + 2]++;
    for (ssize_t i = 2; i < d->size + 2; i++) d->first[i] += d->first[i - 1];
    for (ssize_t p = 0; p < d->padded; p++) d->places[d->first[position_of(d, p) + 1]++] = p;
    return true;
}

/* The first of the padded rows of a row, as the number among the places of each dimension; false if there is none. */
static bool first_source(const struct folding *job, ssize_t row, ssize_t *chosen, ssize_t *at) {
    *at = 0;
    for (int i = job->ndim - 2; i >= 0; i--) {
        const struct folded_dimension *d = &job->dimensions[i];
        ssize_t element = row % d->size;
        row /= d->size;
        chosen[i] = d->first[element];
        if (chosen[i] == d->first[element + 1]) return false;
        *at += d->places[chosen[i]] * d->stride;
    }
    return true;
}

/* The one after it. */
static bool next_source(const struct folding *job, ssize_t *chosen, ssize_t *at) {
    for (int i = job->ndim - 2; i >= 0; i--) {
        const struct folded_dimension *d = &job->dimensions[i];
        ssize_t place = d->places[chosen[i]], element = position_of(d, place);
        bool more = chosen[i] + 1 < d->first[element + 1];
        chosen[i] = more ? chosen[i] + 1 : d->first[element];
        *at += (d->places[chosen[i]] - place) * d->stride;
        if (more) return true;
    }
    return false;
}

#define TEMPLATE "data_movement/padding_backward.inc"
#include "core/each_real.h"

int indexed_pad_backward(uintptr_t grad, const intptr_t *before, int mode, uintptr_t result) {
    if (!WRITABLE(result)) return READ_ONLY;
    array x = ARRAY(grad), y = ARRAY(result);
    enum dtype dtype = dtype_of(x), wide = computed_in(dtype);
    if (dtype_of(y) != dtype || (wide != FLOAT32 && wide != FLOAT64)) return WRONG_DTYPE;
    if (x->ndim < 1 || x->ndim != y->ndim || !is_contiguous(x) || !is_contiguous(y)) return WRONG_SHAPE;
    if (mode < REFLECTED || mode > CIRCULAR) return UNSUPPORTED;
    struct folding job = {.ndim = x->ndim, .x = x->data, .y = y->data, .half = half_of(dtype)};
    ssize_t stride = 1, rows = 1, sources = 1;
    for (int i = x->ndim - 1; i >= 0; i--) {
        ssize_t size = y->shape[i], padded = x->shape[i];
        if (before[i] > padded || (padded && !size)) return WRONG_SHAPE;
        bool as_is = !before[i] && size == padded; /* no place stands for another element */
        job.dimensions[i] = (struct folded_dimension){size, padded, before[i], as_is ? REPLICATED : mode, stride, NULL, NULL};
        if (padded && mode == CIRCULAR && period_of(&job.dimensions[i]) < 1) return WRONG_SHAPE;
        for (ssize_t p = 0; p < padded; p++)
            if ((size_t)position_of(&job.dimensions[i], p) >= (size_t)size) return WRONG_SHAPE;
        stride *= padded;
        if (i < x->ndim - 1) rows *= size, sources *= padded;
    }
    ssize_t last = y->shape[x->ndim - 1];
    if (rows * last == 0) return OK;
    bool memory = true;
    for (int i = 0; i < x->ndim - 1; i++) memory = memory && list_places(&job.dimensions[i]);
    ssize_t cost = x->shape[x->ndim - 1] * (sources / rows + 1) + last;
    if (memory) parallel_for(rows, grain_for(cost), wide == FLOAT32 ? fold_rows_f32 : fold_rows_f64, &job);
    for (int i = 0; i < x->ndim - 1; i++) release(job.dimensions[i].first);
    return memory && !job.no_memory ? OK : NO_MEMORY;
}
