/* Elements chosen by masks: counted, read, written, and found. Masks are contiguous arrays of bool values.
 *
 * The work is done in blocks; where a block's chosen elements begin follows from the counts of the blocks before. Another
 * thread may write to the mask after it was counted, so both the block and its count bound the work on it: elements that
 * are missing then are taken from the block's beginning. */
#include "kernels.h"
#include "core/memory.h"
#include "core/strided.h"
#include "core/threads.h"

#include <string.h>

enum { BLOCK = 1 << 13 };

struct choice {
    const uint8_t *mask;
    ssize_t n, *before; /* how many are chosen before each block, and in all */
    const char *source;
    char *target;
    size_t size;
    array shape; /* whose coordinates are wanted */
};

static ssize_t length(const struct choice *c, ssize_t block) {
    return c->n - block * BLOCK < BLOCK ? c->n - block * BLOCK : BLOCK;
}

static void count_blocks(void *context, ssize_t begin, ssize_t end) {
    const struct choice *c = context;
    for (ssize_t block = begin; block < end; block++) {
        ssize_t n = length(c, block), count = 0;
        const uint8_t *mask = c->mask + block * BLOCK;
        for (ssize_t start = 0; start < n; start += 128) {
            uint8_t part = 0; /* few enough for a byte, of which SIMD registers hold most */
            ssize_t stop = n - start < 128 ? n : start + 128;
            for (ssize_t i = start; i < stop; i++) part += mask[i] != 0;
            count += part;
        }
        c->before[block + 1] = count;
    }
}

/* Count; `choice->before` is to be released. */
static enum status count_chosen(array mask, struct choice *c) {
    if (dtype_of(mask) != BOOL) return WRONG_DTYPE;
    if (!is_contiguous(mask)) return WRONG_SHAPE;
    c->mask = (const uint8_t *)mask->data, c->n = count_of(mask);
    ssize_t blocks = (c->n + BLOCK - 1) / BLOCK;
    c->before = allocate_items(blocks + 1, sizeof(ssize_t));
    if (!c->before) return NO_MEMORY;
    c->before[0] = 0;
    parallel_for(blocks, grain_for(BLOCK / 16), count_blocks, c);
    for (ssize_t block = 0; block < blocks; block++) c->before[block + 1] += c->before[block];
    return OK;
}

static ssize_t total(const struct choice *c) { return c->before[(c->n + BLOCK - 1) / BLOCK]; }

static void run_blocks(struct choice *c, range_task task) {
    parallel_for((c->n + BLOCK - 1) / BLOCK, grain_for(2 * BLOCK), task, c);
    release(c->before);
}

int64_t count_true(uintptr_t mask) {
    struct choice c;
    enum status status = count_chosen(ARRAY(mask), &c);
    if (status) return -(int64_t)status;
    int64_t count = total(&c);
    release(c.before);
    return count;
}

enum { PART = 64 };

/* The true ones of n <= PART elements from number `start` on; returns how many. */
static inline ssize_t find_in_part(const uint8_t *mask, ssize_t start, ssize_t n, int64_t *restrict found) {
    ssize_t k = 0;
#pragma GCC unroll 8
    for (ssize_t i = start; i < start + n; i++) {
        found[k] = i;
        k += mask[i] != 0;
    }
    return k;
}

/* The first `count` true elements of a block. */
static void find(const struct choice *c, ssize_t block, ssize_t count, int64_t *restrict found) {
    ssize_t begin = block * BLOCK, end = begin + length(c, block), k = 0;
    int64_t part[PART]; /* where there may be more than are wanted */
    for (ssize_t start = begin; start < end && k < count; start += PART) {
        ssize_t n = end - start < PART ? end - start : PART;
        if (count - k >= n) {
            k += find_in_part(c->mask, start, n, found + k);
            continue;
        }
        ssize_t more = find_in_part(c->mask, start, n, part);
        for (ssize_t i = 0; i < more && k < count; i++) found[k++] = part[i];
    }
    for (; k < count; k++) found[k] = begin;
}

/* -- reading and writing -- */
#define TEMPLATE "indexing/masks.inc"
#include "core/each_size.h"

static const range_task read_of_size[] = {[1] = read_1, [2] = read_2, [4] = read_4, [8] = read_8, [16] = read_16};
static const range_task write_of_size[] = {[1] = write_1, [2] = write_2, [4] = write_4, [8] = write_8, [16] = write_16};

int masked_read(uintptr_t input, uintptr_t mask, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    array x = ARRAY(input), m = ARRAY(mask), y = ARRAY(output);
    struct choice c = {.source = x->data, .target = y->data, .size = size_of(dtype_of(x))};
    if (dtype_of(x) != dtype_of(y) || dtype_of(x) == NO_DTYPE) return WRONG_DTYPE;
    if (!same_shape(x, m) || !is_contiguous(x) || y->ndim != 1 || !is_contiguous(y)) return WRONG_SHAPE;
    enum status status = count_chosen(m, &c);
    if (status) return status;
    if (total(&c) == y->shape[0]) {
        run_blocks(&c, read_of_size[c.size]);
        return OK;
    }
    release(c.before);
    return WRONG_SHAPE;
}

int masked_write(uintptr_t target, uintptr_t mask, uintptr_t source) {
    if (!WRITABLE(target)) return READ_ONLY;
    array y = ARRAY(target), m = ARRAY(mask), x = ARRAY(source);
    struct choice c = {.source = x->data, .target = y->data, .size = size_of(dtype_of(y))};
    if (dtype_of(x) != dtype_of(y) || dtype_of(x) == NO_DTYPE) return WRONG_DTYPE;
    if (!same_shape(y, m) || !is_contiguous(y) || x->ndim != 1 || !is_contiguous(x)) return WRONG_SHAPE;
    if (overlap(x, y) || overlap(m, y)) return UNSUPPORTED;
    enum status status = count_chosen(m, &c);
    if (status) return status;
    if (total(&c) <= x->shape[0]) {
        run_blocks(&c, write_of_size[c.size]);
        return OK;
    }
    release(c.before);
    return WRONG_SHAPE;
}

/* -- finding -- */
static void find_flat(void *context, ssize_t begin, ssize_t end) {
    const struct choice *c = context;
    for (ssize_t block = begin; block < end; block++)
        find(c, block, c->before[block + 1] - c->before[block], (int64_t *)c->target + c->before[block]);
}

static void find_coordinates(void *context, ssize_t begin, ssize_t end) {
    const struct choice *c = context;
    int last = c->shape->ndim - 1;
    ssize_t width = c->shape->shape[last];
    int64_t at[MAX_DIMS], flat[BLOCK];
    for (ssize_t block = begin; block < end; block++) {
        ssize_t count = c->before[block + 1] - c->before[block], row_end = 0;
        int64_t *result = (int64_t *)c->target + c->before[block] * (last + 1);
        find(c, block, count, flat);
        for (ssize_t k = 0; k < count; k++, result += last + 1) {
            if (k == 0 || flat[k] >= row_end) {
                ssize_t row = flat[k] / width;
                row_end = (row + 1) * width;
                for (int d = last - 1; d >= 0; row /= c->shape->shape[d--]) at[d] = row % c->shape->shape[d];
            }
            for (int d = 0; d < last; d++) result[d] = at[d];
            result[last] = flat[k] - row_end + width;
        }
    }
}

int find_true(uintptr_t mask, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    array m = ARRAY(mask), y = ARRAY(output);
    struct choice c = {.target = y->data, .shape = m};
    bool flat = y->ndim == 1;
    if (dtype_of(y) != INT64) return WRONG_DTYPE;
    if (!is_contiguous(y) || (!flat && (y->ndim != 2 || y->shape[1] != m->ndim || m->ndim == 0))) return WRONG_SHAPE;
    enum status status = count_chosen(m, &c);
    if (status) return status;
    if (total(&c) == y->shape[0]) {
        run_blocks(&c, flat || m->ndim == 1 ? find_flat : find_coordinates);
        return OK;
    }
    release(c.before);
    return WRONG_SHAPE;
}
