/* Lists of parameters as one range of elements. */
#include "optimizer/parameters.h"
#include "core/memory.h"
#include "core/threads.h"
#include "core/widening.h"

enum status open_parameters(struct parameters *all, int arrays, const uintptr_t *addresses, int read) {
    const struct list *lists[MOST_ARRAYS] = {NULL};
    for (int j = 0; j < arrays; j++) {
        if (!(lists[j] = list_at(addresses[j]))) return UNSUPPORTED;
        if (lists[j]->count != lists[0]->count) return WRONG_SHAPE;
    }
    ssize_t count = lists[0]->count, begin = 0;
    enum dtype dtype = count ? dtype_of(lists[0]->items[0]) : FLOAT32;
    if (dtype != FLOAT32 && dtype != FLOAT64 && !half_of(dtype).widen) return WRONG_DTYPE;
    struct parameter *items = allocate_items(count + 1, sizeof *items);
    if (!items) return NO_MEMORY;
    enum status status = OK;
    for (ssize_t i = 0; i < count && !status; i++) {
        array first = lists[0]->items[i];
        items[i].begin = begin;
        for (int j = 0; j < arrays && !status; j++) {
            array a = lists[j]->items[i];
            status = j != read && !is_writable(a) ? READ_ONLY
                   : dtype_of(a) != dtype         ? WRONG_DTYPE
                   : !same_shape(a, first)        ? WRONG_SHAPE
                   : !is_contiguous(a)            ? UNSUPPORTED
                                                  : OK;
            items[i].data[j] = a->data;
        }
        begin += count_of(first);
    }
    items[count].begin = begin;
    *all = (struct parameters){count, arrays, read, dtype, items};
    if (status) close_parameters(all);
    return status;
}

void close_parameters(struct parameters *all) { release(all->items); }

struct job {
    const struct parameters *all;
    update update;
    const void *options;
};

/* The parameter that element number `at` belongs to. */
static const struct parameter *parameter_of(const struct parameters *all, ssize_t at) {
    ssize_t low = 0, high = all->count; /* one that begins at or before `at`, and one that begins behind it */
    while (high - low > 1) {
        ssize_t middle = (low + high) / 2;
        if (all->items[middle].begin <= at) low = middle;
        else high = middle;
    }
    return all->items + low;
}

/* Update n elements of half types, in floats that are rounded once. */
static void update_halves(const struct job *job, struct half half, ssize_t n, char *const *data, const double *rate) {
    enum { PART = 512 };
    float floats[MOST_ARRAYS][PART];
    char *parts[MOST_ARRAYS];
    for (int j = 0; j < job->all->arrays; j++) parts[j] = (char *)floats[j];
    for (ssize_t i = 0, length; i < n; i += length) {
        length = n - i < PART ? n - i : PART;
        for (int j = 0; j < job->all->arrays; j++) half.widen(length, data[j] + 2 * i, floats[j]);
        job->update(length, parts, rate, job->options);
        for (int j = 0; j < job->all->arrays; j++)
            if (j != job->all->read) half.narrow(length, floats[j], data[j] + 2 * i);
    }
}

static void update_range(void *context, ssize_t begin, ssize_t end) {
    const struct job *job = context;
    size_t item = size_of(job->all->dtype);
    struct half half = half_of(job->all->dtype);
    for (const struct parameter *p = parameter_of(job->all, begin); begin < end; p++) {
        ssize_t stop = p[1].begin < end ? p[1].begin : end;
        char *data[MOST_ARRAYS];
        for (int j = 0; j < job->all->arrays; j++) data[j] = p->data[j] + (size_t)(begin - p->begin) * item;
        if (begin < stop && half.widen) update_halves(job, half, stop - begin, data, p->rate);
        else if (begin < stop) job->update(stop - begin, data, p->rate, job->options);
        begin = stop;
    }
}

void update_parameters(const struct parameters *all, const update *updates, const void *options, ssize_t cost) {
    struct job job = {all, updates[all->dtype == FLOAT64], options};
    parallel_for(all->items[all->count].begin, grain_for(cost), update_range, &job);
}
