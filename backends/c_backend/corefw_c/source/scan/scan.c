/* Scans along a dimension: running sums, products, extremes and logarithms of sums of exponentials. */
#include "core/array.h"
#include "kernels.h"
#include "core/mathematics.h"
#include "core/threads.h"
#include "core/widening.h"

#include <float.h>

/* The columns that are scanned side by side; the elements of a row that are compared at a time; those of half types
 * that are floats at a time. */
enum { STRIP = 256, GROUP = 32, PART = 2048 };

#define MEMBER_(name, part) name##_##part
#define MEMBER(name, part) MEMBER_(name, part)

/* -- running sums and products -- */
struct scan {
    size_t input_size, output_size;
    void (*begin)(void *totals, ssize_t width);
    void (*row)(const void *input, void *output, ssize_t n, void *totals);
    void (*columns)(const void *input, void *output, ssize_t n, ssize_t stride, ssize_t width, void *totals);
};
enum { TOTALS = 2 * 8 * STRIP }; /* bytes, of at most two numbers for each column */

#define READ(x) (x)
#define TOTAL double
#define START 0
#define JOIN(a, b) ((a) + (b))
#define SCAN cumsum_f32
#define INPUT float
#define OUTPUT float
#include "scan/scan.inc"
#define SCAN cumsum_f64
#define INPUT double
#define OUTPUT double
#include "scan/scan.inc"
#undef START
#undef JOIN
#define START 1
#define JOIN(a, b) ((a) * (b))
#define SCAN cumprod_f32
#define INPUT float
#define OUTPUT float
#include "scan/scan.inc"
#define SCAN cumprod_f64
#define INPUT double
#define OUTPUT double
#include "scan/scan.inc"
#undef TOTAL

#define TOTAL uint64_t
#define SCAN cumprod_i64
#define INPUT int64_t
#define OUTPUT int64_t
#include "scan/scan.inc"
#undef START
#undef JOIN
#define START 0
#define JOIN(a, b) ((a) + (b))
#define SCAN cumsum_u8
#define INPUT uint8_t
#define OUTPUT int64_t
#include "scan/scan.inc"
#define SCAN cumsum_i32
#define INPUT int32_t
#define OUTPUT int64_t
#include "scan/scan.inc"
#define SCAN cumsum_i64
#define INPUT int64_t
#define OUTPUT int64_t
#include "scan/scan.inc"
#undef READ
#define READ(x) ((x) != 0)
#define SCAN cumsum_bool8
#define INPUT uint8_t
#define OUTPUT int64_t
#include "scan/scan.inc"

/* An array seen as outer x n x inner, cut into strips of the inner elements. */
struct lines {
    const char *x;
    char *y;
    int64_t *indices;
    ssize_t n, inner, strips;
    const struct scan *scan;
    struct half half; /* of half types, whose scan is that of float */
};

/* Fits the arrays to lines along `dim`; the number of pieces of work, or -1. */
static ssize_t lay_lines(struct lines *lines, array x, int dim, array y) {
    if (dim < 0 || dim >= x->ndim || !same_shape(x, y) || !is_contiguous(x) || !is_contiguous(y)) return -1;
    ssize_t outer = 1;
    *lines = (struct lines){.x = x->data, .y = y->data, .n = x->shape[dim], .inner = 1, .half = half_of(dtype_of(x))};
    for (int i = 0; i < dim; i++) outer *= x->shape[i];
    for (int i = dim + 1; i < x->ndim; i++) lines->inner *= x->shape[i];
    lines->strips = (lines->inner + STRIP - 1) / STRIP;
    return lines->n ? outer * lines->strips : 0;
}

/* The first element of a piece, and how many columns it has. */
static ssize_t begin_of(const struct lines *lines, ssize_t piece, ssize_t *width) {
    ssize_t column = piece % lines->strips * STRIP;
    *width = lines->inner - column < STRIP ? lines->inner - column : STRIP;
    return piece / lines->strips * lines->n * lines->inner + column;
}

/* The rows of a piece of half types that are floats at a time. */
static ssize_t rows_of_part(const struct lines *lines, ssize_t width) {
    ssize_t most = lines->inner == 1 ? PART : PART / width;
    return lines->n < most ? lines->n : most;
}

static void scan_halves(const struct lines *lines, ssize_t first, ssize_t width, void *totals) {
    const struct scan *scan = lines->scan;
    float x[PART], y[PART];
    for (ssize_t i = 0, rows, most = rows_of_part(lines, width); i < lines->n; i += rows) {
        ssize_t at = first + i * lines->inner;
        rows = lines->n - i < most ? lines->n - i : most;
        widen_rows(lines->half, rows, width, (const uint16_t *)lines->x + at, lines->inner, x);
        if (lines->inner == 1) scan->row(x, y, rows, totals);
        else scan->columns(x, y, rows, width, width, totals);
        narrow_rows(lines->half, rows, width, y, (uint16_t *)lines->y + at, lines->inner);
    }
}

static void scan_lines(void *context, ssize_t begin, ssize_t end) {
    const struct lines *lines = context;
    const struct scan *scan = lines->scan;
    _Alignas(64) char totals[TOTALS];
    for (ssize_t piece = begin; piece < end; piece++) {
        ssize_t width, first = begin_of(lines, piece, &width);
        const char *x = lines->x + first * (ssize_t)scan->input_size;
        char *y = lines->y + first * (ssize_t)scan->output_size;
        scan->begin(totals, width);
        if (lines->half.widen) scan_halves(lines, first, width, totals);
        else if (lines->inner == 1) scan->row(x, y, lines->n, totals);
        else scan->columns(x, y, lines->n, lines->inner, width, totals);
    }
}

static int run_scan(array x, int dim, array y, const struct scan *scan, enum dtype result) {
    struct lines lines;
    ssize_t pieces = lay_lines(&lines, x, dim, y);
    if (pieces < 0) return WRONG_SHAPE;
    if (!scan || dtype_of(y) != result) return WRONG_DTYPE;
    lines.scan = scan;
    parallel_for(pieces, grain_for(2 * lines.n * (lines.inner < STRIP ? lines.inner : STRIP)), scan_lines, &lines);
    return OK;
}

int cumsum(uintptr_t input, int dim, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    static const struct scan *const scans[NO_DTYPE + 1] = {
        [FLOAT32] = &cumsum_f32, [FLOAT64] = &cumsum_f64, [BOOL] = &cumsum_bool8,
        [UINT8] = &cumsum_u8,    [INT32] = &cumsum_i32,   [INT64] = &cumsum_i64,
    };
    enum dtype dtype = dtype_of(ARRAY(input));
    return run_scan(ARRAY(input), dim, ARRAY(output), scans[computed_in(dtype)], dtype < FLOAT16 ? INT64 : dtype);
}

int cumprod(uintptr_t input, int dim, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    static const struct scan *const scans[NO_DTYPE + 1] = {
        [FLOAT32] = &cumprod_f32, [FLOAT64] = &cumprod_f64, [INT64] = &cumprod_i64,
    };
    enum dtype dtype = dtype_of(ARRAY(input));
    return run_scan(ARRAY(input), dim, ARRAY(output), scans[computed_in(dtype)], dtype);
}

/* -- running extremes -- */
struct extreme_scan {
    void (*begin)(const void *input, void *bests, ssize_t width);
    void (*row)(const void *input, void *output, int64_t *indices, ssize_t n, ssize_t from, void *bests);
    void (*columns)(const void *input, void *output, int64_t *indices, ssize_t n, ssize_t stride, ssize_t index_stride,
                    ssize_t width, ssize_t from, void *bests);
};

#define INPUT float
#define SCAN cummax_f32
#define LEADS(x, best) (((x) >= (best)) | ((x) != (x)))
#include "scan/scan_extreme.inc"
#define SCAN cummin_f32
#define LEADS(x, best) (((x) <= (best)) | ((x) != (x)))
#include "scan/scan_extreme.inc"
#undef INPUT
#define INPUT double
#define SCAN cummax_f64
#define LEADS(x, best) (((x) >= (best)) | ((x) != (x)))
#include "scan/scan_extreme.inc"
#define SCAN cummin_f64
#define LEADS(x, best) (((x) <= (best)) | ((x) != (x)))
#include "scan/scan_extreme.inc"
#undef INPUT
#define INPUT int64_t
#define SCAN cummax_i64
#define LEADS(x, best) ((x) >= (best))
#include "scan/scan_extreme.inc"
#define SCAN cummin_i64
#define LEADS(x, best) ((x) <= (best))
#include "scan/scan_extreme.inc"
#undef INPUT
#define INPUT int32_t
#define SCAN cummax_i32
#define LEADS(x, best) ((x) >= (best))
#include "scan/scan_extreme.inc"
#define SCAN cummin_i32
#define LEADS(x, best) ((x) <= (best))
#include "scan/scan_extreme.inc"
#undef INPUT
#define INPUT uint8_t
#define SCAN cummax_bool
#define LEADS(x, best) (!!(x) >= !!(best)) /* true is any byte but 0 */
#include "scan/scan_extreme.inc"
#define SCAN cummin_bool
#define LEADS(x, best) (!!(x) <= !!(best))
#include "scan/scan_extreme.inc"
#define SCAN cummax_u8
#define LEADS(x, best) ((x) >= (best))
#include "scan/scan_extreme.inc"
#define SCAN cummin_u8
#define LEADS(x, best) ((x) <= (best))
#include "scan/scan_extreme.inc"
#undef INPUT

struct extreme_lines {
    struct lines lines;
    const struct extreme_scan *scan;
    ssize_t itemsize;
};

static void scan_half_extremes(const struct extreme_lines *job, ssize_t first, ssize_t width) {
    const struct lines *lines = &job->lines;
    _Alignas(64) char bests[TOTALS];
    float x[PART], y[PART];
    for (ssize_t i = 0, rows, most = rows_of_part(lines, width); i < lines->n; i += rows) {
        ssize_t at = first + i * lines->inner;
        rows = lines->n - i < most ? lines->n - i : most;
        widen_rows(lines->half, rows, width, (const uint16_t *)lines->x + at, lines->inner, x);
        if (i == 0) job->scan->begin(x, bests, width);
        if (lines->inner == 1) job->scan->row(x, y, lines->indices + at, rows, i, bests);
        else job->scan->columns(x, y, lines->indices + at, rows, width, lines->inner, width, i, bests);
        narrow_rows(lines->half, rows, width, y, (uint16_t *)lines->y + at, lines->inner);
    }
}

static void scan_extremes(void *context, ssize_t begin, ssize_t end) {
    const struct extreme_lines *job = context;
    const struct lines *lines = &job->lines;
    _Alignas(64) char bests[TOTALS];
    for (ssize_t piece = begin; piece < end; piece++) {
        ssize_t width, inner = lines->inner, first = begin_of(lines, piece, &width);
        if (lines->half.widen) {
            scan_half_extremes(job, first, width);
            continue;
        }
        const char *x = lines->x + first * job->itemsize;
        char *y = lines->y + first * job->itemsize;
        job->scan->begin(x, bests, width);
        if (inner == 1) job->scan->row(x, y, lines->indices + first, lines->n, 0, bests);
        else job->scan->columns(x, y, lines->indices + first, lines->n, inner, inner, width, 0, bests);
    }
}

int cumulative_extreme(uintptr_t input, int dim, int largest, uintptr_t values, uintptr_t indices) {
    if (!WRITABLE(values, indices)) return READ_ONLY;
    static const struct extreme_scan *const scans[2][NO_DTYPE + 1] = {
        {[FLOAT32] = &cummin_f32, [FLOAT64] = &cummin_f64, [INT64] = &cummin_i64, [INT32] = &cummin_i32,
         [UINT8] = &cummin_u8, [BOOL] = &cummin_bool},
        {[FLOAT32] = &cummax_f32, [FLOAT64] = &cummax_f64, [INT64] = &cummax_i64, [INT32] = &cummax_i32,
         [UINT8] = &cummax_u8, [BOOL] = &cummax_bool},
    };
    array x = ARRAY(input), v = ARRAY(values), at = ARRAY(indices);
    struct extreme_lines job;
    ssize_t pieces = lay_lines(&job.lines, x, dim, v);
    if (pieces < 0 || !same_shape(x, at) || !is_contiguous(at)) return WRONG_SHAPE;
    job.scan = scans[!!largest][computed_in(dtype_of(x))];
    if (!job.scan || dtype_of(v) != dtype_of(x) || dtype_of(at) != INT64) return WRONG_DTYPE;
    job.lines.indices = (int64_t *)at->data;
    job.itemsize = (ssize_t)size_of(dtype_of(x));
    ssize_t width = job.lines.inner < STRIP ? job.lines.inner : STRIP;
    parallel_for(pieces, grain_for(4 * job.lines.n * width), scan_extremes, &job);
    return OK;
}

/* -- running logarithms of sums of exponentials, in double -- */
/* The sum so far is total * exp(largest), where `largest` is finite unless an infinite element came. */
#define STEP(x, largest, total)                                                            \
    do {                                                                                   \
        double distance = (x) == (largest) ? 0 : fabs((largest) - (x));                    \
        double ratio = exp(-distance);                                                     \
        (total) = (x) > (largest) ? (total) * ratio + 1 : (total) + ratio;                 \
        (largest) = (x) > (largest) ? (x) : (largest);                                     \
    } while (0)

#define TEMPLATE "scan/logcumsumexp.inc"
#include "core/each_real.h"

int logcumsumexp(uintptr_t input, int dim, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    enum dtype dtype = dtype_of(ARRAY(input));
    static const struct scan *const scans[NO_DTYPE + 1] = {
        [FLOAT32] = &logcumsumexp_f32, [FLOAT64] = &logcumsumexp_f64,
    };
    return run_scan(ARRAY(input), dim, ARRAY(output), scans[computed_in(dtype)], dtype);
}

/* -- linear recurrences: y[i] = x[i] + factor[i] y[i - 1] -- */
struct recurrence_lines {
    struct lines lines;
    const char *factor;
    ssize_t itemsize;
    void (*columns)(const void *factors, const void *inputs, void *outputs, ssize_t n, ssize_t stride, ssize_t width,
                    double *totals);
};

#define TEMPLATE "scan/recurrence.inc"
#include "core/each_real.h"

static void recur_halves(const struct recurrence_lines *job, ssize_t first, ssize_t width, double *totals) {
    const struct lines *lines = &job->lines;
    float factor[PART], x[PART], y[PART];
    for (ssize_t i = 0, rows, most = rows_of_part(lines, width); i < lines->n; i += rows) {
        ssize_t at = first + i * lines->inner;
        rows = lines->n - i < most ? lines->n - i : most;
        widen_rows(lines->half, rows, width, (const uint16_t *)job->factor + at, lines->inner, factor);
        widen_rows(lines->half, rows, width, (const uint16_t *)lines->x + at, lines->inner, x);
        job->columns(factor, x, y, rows, width, width, totals);
        narrow_rows(lines->half, rows, width, y, (uint16_t *)lines->y + at, lines->inner);
    }
}

static void recur(void *context, ssize_t begin, ssize_t end) {
    const struct recurrence_lines *job = context;
    const struct lines *lines = &job->lines;
    for (ssize_t piece = begin; piece < end; piece++) {
        ssize_t width, first = begin_of(lines, piece, &width), at = first * job->itemsize;
        double totals[STRIP];
        for (ssize_t j = 0; j < width; j++) totals[j] = 0;
        if (lines->half.widen) recur_halves(job, first, width, totals);
        else job->columns(job->factor + at, lines->x + at, lines->y + at, lines->n, lines->inner, width, totals);
    }
}

int linear_recurrence(uintptr_t factor, uintptr_t input, int dim, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    array f = ARRAY(factor), x = ARRAY(input), y = ARRAY(output);
    enum dtype dtype = dtype_of(x), wide = computed_in(dtype);
    struct recurrence_lines job = {.factor = f->data, .itemsize = (ssize_t)size_of(dtype)};
    ssize_t pieces = lay_lines(&job.lines, x, dim, y);
    if (pieces < 0 || !same_shape(f, x) || !is_contiguous(f)) return WRONG_SHAPE;
    if (dtype_of(f) != dtype || dtype_of(y) != dtype || (wide != FLOAT32 && wide != FLOAT64)) return WRONG_DTYPE;
    job.columns = wide == FLOAT32 ? recurrence_columns_f32 : recurrence_columns_f64;
    ssize_t width = job.lines.inner < STRIP ? job.lines.inner : STRIP;
    parallel_for(pieces, grain_for(4 * job.lines.n * width), recur, &job);
    return OK;
}
