/* Blocks of arrays at positions along some dimensions: read, written, or added to. */
#include "kernels.h"
#include "core/memory.h"
#include "indexing/positions.h"
#include "core/sizes.h"
#include "core/strided.h"
#include "core/threads.h"
#include "core/widening.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* The array's dimensions before, at and after the indexed ones; the last lie in memory without gaps. */
struct blocks {
    array x;
    int dim;             /* how many dimensions lie before */
    ssize_t outer, size; /* their elements; bytes of an element */
    ssize_t bytes;       /* of a block */
    const uintptr_t *indices;
    struct positions positions;
    const int64_t *given; /* or unchecked ones, which count back from the end if `from_end` */
    bool from_end;
    atomic_bool outside;
    char *values; /* the other side: contiguous, or a single element */
    bool scalar;
    enum dtype dtype;
    ssize_t columns, column; /* a block is worked on in that many parts of that many bytes, */
    ssize_t stretches;       /* and the places of blocks in that many stretches of memory, */
    ssize_t low, high;       /* which begin and end so many bytes after the first element */
};

/* Where the elements with outer coordinates `i`, counted row by row, begin. */
static char *outer_place(const struct blocks *b, ssize_t i) {
    char *place = b->x->data;
    for (int d = b->dim - 1; d >= 0; i /= b->x->shape[d--]) place += i % b->x->shape[d] * b->x->strides[d];
    return place;
}

/* Fill in what follows from the arrays, but for the positions, and check that `values` is before + common + after, or one
 * element. */
static enum status read_arrays(array x, int dim, const uintptr_t *index, int count, array values, struct blocks *b) {
    int ndim, after = dim + count;
    array several = ARRAY(*index);
    const uintptr_t *indices = b->indices = count == 1 ? index : (const uintptr_t *)several->data;
    ssize_t shape[MAX_DIMS], expected = b->size = (ssize_t)size_of(dtype_of(x));
    if (dtype_of(x) == NO_DTYPE || dtype_of(values) != dtype_of(x)) return WRONG_DTYPE;
    if (count > 1 && (dtype_of(several) != UINT64 || count_of(several) != count || !is_contiguous(several)))
        return WRONG_SHAPE;
    if (dim < 0 || count < 1 || after > x->ndim || !common_shape(indices, count, &ndim, shape)) return WRONG_SHAPE;
    bool gaps = false;
    for (int i = x->ndim - 1; i >= after; expected *= x->shape[i--])
        gaps |= x->shape[i] > 1 && x->strides[i] != expected;
    if (gaps && count_of(x)) return UNSUPPORTED; /* strides of no elements mean nothing */
    if (overlap(x, values)) return UNSUPPORTED;
    for (int i = 0; i < count; i++)
        if (overlap(x, ARRAY(indices[i]))) return UNSUPPORTED;
    b->scalar = values->ndim == 0;
    if (!b->scalar) {
        bool fits = values->ndim == x->ndim - count + ndim && is_contiguous(values);
        for (int i = 0; fits && i < values->ndim; i++)
            fits = values->shape[i] == (i < dim          ? x->shape[i]
                                        : i < dim + ndim ? shape[i - dim]
                                                         : x->shape[i - ndim + count]);
        if (!fits) return WRONG_SHAPE;
    }
    b->x = x, b->dim = dim, b->bytes = expected, b->values = values->data, b->dtype = dtype_of(x), b->outer = 1;
    for (int i = 0; i < dim; i++) b->outer *= x->shape[i];
    return OK;
}

/* Fill in what follows from the arrays, with positions in their range. */
static enum status find_blocks(array x, int dim, const uintptr_t *index, int count, bool from_end, array values,
                               struct blocks *b) {
    enum status status = read_arrays(x, dim, index, count, values, b);
    return status ? status : find_positions(x, dim, b->indices, count, from_end, &b->positions);
}

/* -- reading -- */
#define TEMPLATE "data_movement/moves.inc"
#include "core/each_size.h"

enum { LARGEST_ELEMENT = 16, AHEAD = 4 /* blocks */ };
typedef void (*take_function)(ssize_t n, const int64_t *at, ssize_t step, const char *source, char *target);
static const take_function take_of_size[] = {[1] = take_1, [2] = take_2, [4] = take_4, [8] = take_8, [16] = take_16};

/* The n blocks at these positions after `source`, to number `first` on of the values. */
static void take_run(const struct blocks *b, ssize_t n, const int64_t *at, const char *source, ssize_t first) {
    ssize_t step = b->positions.step;
    char *target = b->values + first * b->bytes;
    take_function take = b->bytes <= LARGEST_ELEMENT ? take_of_size[b->bytes] : NULL;
    if (take) take(n, at, step, source, target);
    else
        for (ssize_t i = 0; i < n; i++) copy_bytes((size_t)b->bytes, target + i * b->bytes, source + at[i] * step);
}

static void take_blocks(void *context, ssize_t begin, ssize_t end) {
    const struct blocks *b = context;
    for (ssize_t n = b->positions.count, run; begin < end; begin += run) {
        ssize_t p = begin % n;
        run = n - p < end - begin ? n - p : end - begin;
        take_run(b, run, b->positions.at + p, outer_place(b, begin / n), begin);
    }
}

/* The same at given positions, up to the first one that does not count from the start; returns its number. */
typedef ssize_t (*take_given_function)(ssize_t n, const int64_t *given, ssize_t size, ssize_t step, const char *source,
                                       char *target);
static const take_given_function take_given_of_size[] = {
    [1] = take_given_1, [2] = take_given_2, [4] = take_given_4, [8] = take_given_8, [16] = take_given_16};

static ssize_t take_from_start(const struct blocks *b, ssize_t n, const int64_t *given, const char *source, char *target) {
    ssize_t size = b->x->shape[b->dim], step = b->positions.step, p = 0;
    if (b->bytes <= LARGEST_ELEMENT && take_given_of_size[b->bytes])
        return take_given_of_size[b->bytes](n, given, size, step, source, target);
    for (int64_t at; p < n && is_within(at = position_at(given, p), size); p++) {
        if (p + AHEAD < n) /* also what lies outside */
            __builtin_prefetch((const char *)((uintptr_t)source + (uintptr_t)position_at(given, p + AHEAD) * (uintptr_t)step));
        copy_bytes((size_t)b->bytes, target + p * b->bytes, source + at * step);
    }
    return p;
}

static void take_given(void *context, ssize_t begin, ssize_t end) {
    struct blocks *b = context;
    _Alignas(64) int64_t at[PIECE];
    for (ssize_t n = b->positions.count, run; begin < end; begin += run) {
        const int64_t *given = b->given + begin % n;
        const char *source = outer_place(b, begin / n);
        run = n - begin % n < end - begin ? n - begin % n : end - begin;
        ssize_t p = take_from_start(b, run, given, source, b->values + begin * b->bytes);
        for (ssize_t piece; p < run; p += piece) {
            piece = run - p < PIECE ? run - p : PIECE;
            if (!read_positions(piece, given + p, b->x->shape[b->dim], b->from_end, 1, true, at)) {
                b->outside = true;
                return;
            }
            take_run(b, piece, at, source, begin + p);
        }
    }
}

/* Whether the positions are the elements of one array, as they lie, and are needed. */
static bool are_given(struct blocks *b, array index, int count, bool from_end) {
    if (count != 1 || b->outer == 0 || !(b->given = adjacent_positions(index))) return false;
    b->positions = (struct positions){.count = count_of(index), .step = b->x->strides[b->dim]};
    b->from_end = from_end, b->outside = false;
    return true;
}

int index_read(uintptr_t input, int dim, uintptr_t index, int count, int from_end, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    struct blocks b;
    array y = ARRAY(output);
    if (y->ndim == 0 && !is_contiguous(y)) return WRONG_SHAPE;
    enum status status = read_arrays(ARRAY(input), dim, &index, count, y, &b);
    if (status) return status;
    bool given = are_given(&b, ARRAY(index), count, from_end);
    if (!given) status = find_positions(b.x, dim, b.indices, count, from_end, &b.positions);
    if (status) return status;
    if (b.scalar && (b.outer * b.positions.count != 1 || b.bytes != b.size)) status = WRONG_SHAPE;
    else {
        ssize_t grain = grain_for(4 + b.bytes / 16);
        parallel_for(b.outer * b.positions.count, grain, given ? take_given : take_blocks, &b);
        if (given && b.outside) status = OUT_OF_RANGE;
    }
    release(b.positions.at);
    return status;
}

/* -- writing: each thread has outer places, or stretches of memory and columns, of its own, so that of equal positions the
 *    last one stays -- */
enum { COLUMN = 512 /* bytes */, CHUNK = 256 /* positions */, LARGEST_LINED = 8 /* elements of a block */,
       WIDEST_LINED = 64 /* bytes */, MANY = 1 << 13 /* positions */ };

/* Large blocks are divided, and so is the memory of many. A stretch is a part of it that a thread has in its cache since it
 * filled the array. */
static void split_blocks(struct blocks *b, int count) {
    b->column = b->bytes >= 2 * COLUMN ? COLUMN : b->bytes;
    b->columns = b->bytes ? (b->bytes + b->column - 1) / b->column : 1;
    bool many = b->bytes > b->size && b->positions.count >= MANY;
    b->stretches = (b->columns > 1 || many) && b->outer == 1 ? thread_count() : 1;
    b->low = b->high = 0;
    for (int i = b->dim; i < b->dim + count; i++)
        *(b->x->strides[i] < 0 ? &b->low : &b->high) += (b->x->shape[i] - 1) * b->x->strides[i];
}

/* A part of the work: where it begins on either side, how many bytes of each block it is, and where the blocks lie. */
struct part {
    char *target;
    const char *values;
    ssize_t width, low, high;
};

static struct part part_of(const struct blocks *b, ssize_t i) {
    ssize_t start = i % b->columns * b->column, stretch = i / b->columns % b->stretches;
    ssize_t outer = i / b->columns / b->stretches, extent = b->high + 1 - b->low;
    return (struct part){
        .target = outer_place(b, outer) + start,
        .values = b->scalar ? b->values : b->values + outer * b->positions.count * b->bytes + start,
        .width = b->bytes - start < b->column ? b->bytes - start : b->column,
        .low = b->low + extent * stretch / b->stretches,
        .high = b->low + extent * (stretch + 1) / b->stretches,
    };
}

/* Which of the CHUNK positions from `first` on belong to a part. */
static ssize_t choose(const struct blocks *b, const struct part *part, ssize_t first, ssize_t *chosen) {
    ssize_t n = 0, last = first + CHUNK < b->positions.count ? first + CHUNK : b->positions.count;
    for (ssize_t p = first; p < last; p++) {
        ssize_t place = b->positions.at[p] * b->positions.step;
        chosen[n] = p;
        n += (place >= part->low) & (place < part->high);
    }
    return n;
}

typedef void (*put_function)(ssize_t n, const int64_t *at, ssize_t step, const char *values, bool same, char *target);
static const put_function put_of_size[] = {[1] = put_1, [2] = put_2, [4] = put_4, [8] = put_8, [16] = put_16};

static void put_blocks(void *context, ssize_t begin, ssize_t end) {
    const struct blocks *b = context;
    ssize_t n = b->positions.count, step = b->positions.step, chosen[CHUNK];
    const int64_t *at = b->positions.at;
    char repeated[2 * COLUMN];
    if (b->scalar && b->bytes > b->size)
        copy_row((b->bytes < 2 * COLUMN ? b->bytes : COLUMN) / b->size, repeated, b->size, b->values, 0, (size_t)b->size);
    for (ssize_t i = begin; i < end; i++) {
        struct part part = part_of(b, i);
        if (b->bytes == b->size) {
            put_of_size[b->size](n, at, step, part.values, b->scalar, part.target);
            continue;
        }
        for (ssize_t first = 0; first < n; first += CHUNK)
            for (ssize_t j = 0, count = choose(b, &part, first, chosen); j < count; j++) {
                const char *values = b->scalar ? repeated : part.values + chosen[j] * b->bytes;
                copy_bytes((size_t)part.width, part.target + at[chosen[j]] * step, values);
            }
    }
}

int index_write(uintptr_t target, int dim, uintptr_t index, int count, int from_end, uintptr_t values) {
    if (!WRITABLE(target)) return READ_ONLY;
    struct blocks b;
    enum status status = find_blocks(ARRAY(target), dim, &index, count, from_end, ARRAY(values), &b);
    if (status) return status;
    split_blocks(&b, count);
    if (b.positions.count)
        parallel_for(b.outer * b.stretches * b.columns, grain_for(b.positions.count * (2 + b.column / 16) / b.stretches),
                     put_blocks, &b);
    release(b.positions.at);
    return OK;
}

/* -- adding: in the order of the positions -- */
#define TEMPLATE "indexing/blocks.inc"
#include "core/each_number.h"

static void add_chosen(const struct blocks *b, const struct part *part, ssize_t count, const ssize_t *chosen) {
#define ADD(type) add_chosen_##type(&b->positions, count, chosen, part->target, part->values, part->width, b->bytes)
    switch (b->dtype) {
    case BOOL: ADD(b8); break;
    case UINT8: ADD(u8); break;
    case INT8: ADD(i8); break;
    case INT16:
    case UINT16: ADD(i16); break;
    case INT32:
    case UINT32: ADD(i32); break;
    case INT64:
    case UINT64: ADD(i64); break;
    case FLOAT32:
    case COMPLEX64: ADD(f32); break;
    case FLOAT64:
    case COMPLEX128: ADD(f64); break;
    default: break;
    }
#undef ADD
}

static void add_blocks(void *context, ssize_t begin, ssize_t end) {
    const struct blocks *b = context;
    ssize_t chosen[CHUNK];
    for (ssize_t i = begin; i < end; i++) {
        struct part part = part_of(b, i);
        if (b->bytes == b->size) add_chosen(b, &part, b->positions.count, NULL);
        else
            for (ssize_t first = 0; first < b->positions.count; first += CHUNK)
                add_chosen(b, &part, choose(b, &part, first, chosen), chosen);
    }
}

/* -- adding to half types: in float, rounded once -- */
struct half_sums {
    const struct blocks *b;
    struct half half;
    ssize_t places, unit; /* where blocks may begin: so many places, so many bytes apart, from b->low on */
    ssize_t *order;       /* the numbers of the positions, sorted by place, those at one place as they came */
    atomic_bool no_memory;
};

static ssize_t place_of(const struct half_sums *sums, ssize_t p) {
    const struct blocks *b = sums->b;
    return (b->positions.at[p] * b->positions.step - b->low) / sums->unit;
}

struct placed {
    ssize_t place, number;
};

static int compare_placed(const void *one, const void *other) {
    const struct placed *a = one, *b = other;
    if (a->place != b->place) return a->place > b->place ? 1 : -1;
    return (a->number > b->number) - (a->number < b->number);
}

/* Find the order: by counting, unless there are far more places than positions. */
static bool sort_places(struct half_sums *sums) {
    ssize_t n = sums->b->positions.count;
    bool counted = sums->places / 16 <= n;
    void *scratch = allocate_items(counted ? sums->places + 1 : n, counted ? sizeof(ssize_t) : sizeof(struct placed));
    sums->order = allocate_items(n, sizeof(ssize_t));
    if (!scratch || !sums->order) {
        release(scratch);
        return false;
    }
    if (counted) {
        ssize_t *next = scratch;
        memset(next, 0, (size_t)(sums->places + 1) * sizeof *next);
        for (ssize_t p = 0; p < n; p++) next[place_of(sums, p) + 1]++;
        for (ssize_t i = 1; i <= sums->places; i++) next[i] += next[i - 1];
        for (ssize_t p = 0; p < n; p++) sums->order[next[place_of(sums, p)]++] = p;
    } else {
        struct placed *placed = scratch;
        for (ssize_t p = 0; p < n; p++) placed[p] = (struct placed){place_of(sums, p), p};
        qsort(placed, (size_t)n, sizeof *placed, compare_placed);
        for (ssize_t p = 0; p < n; p++) sums->order[p] = placed[p].number;
    }
    release(scratch);
    return true;
}

/* Add the blocks of `count` positions, which are one place, to that of `target`. */
static void add_half_block(const struct half_sums *sums, ssize_t count, const ssize_t *numbers, char *target,
                           const char *values) {
    enum { PART = 512 };
    float sum[PART], value[PART];
    ssize_t bytes = sums->b->bytes, n = bytes / (ssize_t)sizeof(uint16_t);
    for (ssize_t from = 0; from < n; from += PART) {
        ssize_t part = n - from < PART ? n - from : PART, at = from * (ssize_t)sizeof(uint16_t);
        sums->half.widen(part, target + at, sum);
        for (ssize_t k = 0; k < count; k++) {
            sums->half.widen(part, values + numbers[k] * bytes + at, value);
            for (ssize_t i = 0; i < part; i++) sum[i] += value[i];
        }
        sums->half.narrow(part, sum, target + at);
    }
}

/* The places that begin among these positions, for each outer place. */
static void add_half_places(void *context, ssize_t begin, ssize_t end) {
    const struct half_sums *sums = context;
    const struct blocks *b = sums->b;
    const ssize_t n = b->positions.count, *order = sums->order;
    for (ssize_t i = begin, count; i < end; i += count) {
        ssize_t k = i % n, outer = i / n, place = place_of(sums, order[k]);
        for (count = 1; k + count < n && place_of(sums, order[k + count]) == place;) count++;
        if (k && place_of(sums, order[k - 1]) == place) continue; /* another range has it */
        add_half_block(sums, count, order + k, outer_place(b, outer) + b->positions.at[order[k]] * b->positions.step,
                       b->values + outer * n * b->bytes);
    }
}

/* Lines of places without gaps, for each outer place, or stretches of them, are floats until all is added. */
static void add_half_lines(void *context, ssize_t begin, ssize_t end) {
    struct half_sums *sums = context;
    const struct blocks *b = sums->b;
    const ssize_t block = b->bytes / (ssize_t)sizeof(uint16_t), floats = block * (ssize_t)sizeof(float);
    const ssize_t most = size_times(sums->places / b->stretches + 1, block);
    const ssize_t step = 2 * b->positions.step; /* in floats */
    const ssize_t together = block <= LARGEST_LINED ? CHUNK : 1; /* the blocks of values that are widened at a time */
    float *line = allocate_items(size_plus(most, together * block), sizeof *line), *values = line + most;
    ssize_t chosen[CHUNK];
    if (!line) {
        sums->no_memory = true;
        return;
    }
    for (ssize_t item = begin; item < end; item++) {
        ssize_t stretch = item % b->stretches, outer = item / b->stretches;
        ssize_t first = sums->places * stretch / b->stretches, last = sums->places * (stretch + 1) / b->stretches;
        struct part part = {.low = b->low + first * b->bytes, .high = b->low + last * b->bytes};
        char *target = outer_place(b, outer) + part.low, *sum = (char *)line - 2 * part.low;
        const char *from = b->values + outer * b->positions.count * b->bytes;
        sums->half.widen((last - first) * block, target, line);
        for (ssize_t p = 0, count; p < b->positions.count; p += count) {
            count = b->positions.count - p < CHUNK ? b->positions.count - p : CHUNK;
            if (together > 1) {
                struct positions positions = {count, step, b->positions.at + p};
                sums->half.widen(count * block, from + p * b->bytes, values);
                add_chosen_f32(&positions, count, NULL, sum, (const char *)values, floats, floats);
                continue;
            }
            for (ssize_t j = 0, found = choose(b, &part, p, chosen); j < found; j++) {
                struct positions positions = {1, step, b->positions.at + chosen[j]};
                sums->half.widen(block, from + chosen[j] * b->bytes, values);
                add_chosen_f32(&positions, 1, NULL, sum, (const char *)values, floats, floats);
            }
        }
        sums->half.narrow((last - first) * block, line, target);
    }
    release(line);
}

static enum status add_halves(struct blocks *b, int count) {
    struct half_sums sums = {.b = b, .half = half_of(b->dtype), .no_memory = false};
    ssize_t n = b->positions.count, indexed = 1;
    if (n == 0 || b->bytes == 0) return OK;
    for (int i = b->dim; i < b->dim + count; i++) {
        ssize_t rest = b->x->shape[i] > 1 ? labs(b->x->strides[i]) : 0; /* to their greatest common divisor */
        for (ssize_t other; rest; rest = other) {
            other = sums.unit % rest;
            sums.unit = rest;
        }
        indexed *= b->x->shape[i];
    }
    if (!sums.unit) sums.unit = b->bytes;
    sums.places = (b->high - b->low) / sums.unit + 1;
    if (sums.unit == b->bytes && sums.places == indexed && sums.places / 4 <= n && b->bytes <= WIDEST_LINED) {
        b->stretches = b->outer == 1 && b->bytes > LARGEST_LINED * (ssize_t)sizeof(uint16_t) ? thread_count() : 1;
        parallel_for(b->outer * b->stretches, grain_for((sums.places + n) / b->stretches * (2 + b->bytes / 8)),
                     add_half_lines, &sums);
        return sums.no_memory ? NO_MEMORY : OK;
    }
    bool sorted = sort_places(&sums);
    if (sorted) parallel_for(b->outer * n, grain_for(16 + b->bytes / 4), add_half_places, &sums);
    release(sums.order);
    return sorted ? OK : NO_MEMORY;
}

int index_sum(uintptr_t target, int dim, uintptr_t index, int count, int from_end, uintptr_t values) {
    if (!WRITABLE(target)) return READ_ONLY;
    struct blocks b;
    enum dtype dtype = dtype_of(ARRAY(target));
    enum status status = find_blocks(ARRAY(target), dim, &index, count, from_end, ARRAY(values), &b);
    if (status) return status;
    split_blocks(&b, count);
    if (b.scalar && (b.outer * b.positions.count != 1 || b.bytes != b.size)) status = WRONG_SHAPE;
    else if (half_of(dtype).widen) status = add_halves(&b, count);
    else
        parallel_for(b.outer * b.stretches * b.columns, grain_for(b.positions.count * (2 + b.column / 8) / b.stretches),
                     add_blocks, &b);
    release(b.positions.at);
    return status;
}
