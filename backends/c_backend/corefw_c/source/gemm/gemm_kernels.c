/* The kernel of matrix products: vectors, matrices and broadcast batches of them as products of strided matrices. */
#include "core/array.h"
#include "gemm/gemm.h"
#include "kernels.h"
#include "core/threads.h"

#include <string.h>

enum { ALONE_WORK = 1 << 22 }; /* multiplications of a product that is worth all threads by itself */

/* One batch dimension: its size, and the steps between neighbours in bytes. */
struct dimension {
    ssize_t n, a, b, added, c;
};

struct batch {
    struct product product; /* the first one */
    struct dimension dimensions[MAX_DIMS];
    int ndim;
    multiplication *multiply;
    bool failed;
};

/* The strides of an argument's matrices in elements. */
struct matrix {
    ssize_t rows, columns, row, column;
};

/* An argument's matrices; a vector is one row, or one column where it is `right`. */
static struct matrix matrix_of(array x, bool right, bool transposed) {
    ssize_t size = (ssize_t)size_of(dtype_of(x)), last = x->ndim - 1;
    if (x->ndim == 1)
        return right ? (struct matrix){x->shape[0], 1, x->strides[0] / size, 1}
                     : (struct matrix){1, x->shape[0], 1, x->strides[0] / size};
    struct matrix m = {x->shape[last - 1], x->shape[last], x->strides[last - 1] / size, x->strides[last] / size};
    return transposed ? (struct matrix){m.columns, m.rows, m.column, m.row} : m;
}

/* Whether all elements lie at multiples of their size from the first. */
static bool has_whole_strides(array x) {
    ssize_t size = (ssize_t)size_of(dtype_of(x));
    for (int i = 0; i < x->ndim; i++)
        if (x->strides[i] % size) return false;
    return true;
}

/* The step of x along the dimension that is `from_end` before the last one, of size n: 0 where x is broadcast. False if
 * x does not fit. */
static bool step_of(array x, int from_end, ssize_t n, ssize_t *step) {
    int i = x->ndim - 1 - from_end;
    *step = i >= 0 && x->shape[i] != 1 ? x->strides[i] : 0;
    return i < 0 || x->shape[i] == n || x->shape[i] == 1;
}

/* Make one product of many where the rows of all of them are equally far apart and b is the same for all. */
static void join_rows(struct batch *batch, ssize_t size) {
    struct product *p = &batch->product;
    while (batch->ndim) {
        struct dimension d = batch->dimensions[batch->ndim - 1];
        bool joined = d.b == 0 && d.c == p->m * p->c_row * size && (p->m == 1 || d.a == p->m * p->a_row * size) &&
                      (!p->added || p->m == 1 || d.added == p->m * p->added_row * size);
        if (!joined) return;
        if (p->m == 1) p->a_row = d.a / size, p->added_row = d.added / size;
        p->m *= d.n;
        batch->ndim--;
    }
}

/* Where rows lie in several dimensions that are no single one, as those of a transposed array, let each product have
 * those of the longest: a factor that is the same for all is packed, or read, for many rows at a time. */
static void choose_rows(struct batch *batch, ssize_t size) {
    struct product *p = &batch->product;
    for (int i = 0; i < batch->ndim; i++) {
        struct dimension d = batch->dimensions[i];
        if (d.b != 0 || d.n <= p->m) continue;
        batch->dimensions[i] =
            (struct dimension){p->m, p->a_row * size, 0, p->added_row * size, p->c_row * size};
        p->m = d.n, p->a_row = d.a / size, p->added_row = d.added / size, p->c_row = d.c / size;
    }
}

/* Products begin to end of the batch. */
static void multiply_batch(void *context, ssize_t begin, ssize_t end) {
    struct batch *batch = context;
    struct product p = batch->product;
    ssize_t at[MAX_DIMS], rest = begin;
    for (int i = batch->ndim - 1; i >= 0; i--) {
        struct dimension d = batch->dimensions[i];
        at[i] = rest % d.n;
        rest /= d.n;
        p.a = (const char *)p.a + at[i] * d.a;
        p.b = (const char *)p.b + at[i] * d.b;
        p.c = (char *)p.c + at[i] * d.c;
        if (p.added) p.added = (const char *)p.added + at[i] * d.added;
    }
    for (ssize_t item = begin; item < end; item++) {
        if (!batch->multiply(&p)) batch->failed = true;
        for (int i = batch->ndim - 1; i >= 0; i--) {
            struct dimension d = batch->dimensions[i];
            ssize_t by = ++at[i] < d.n ? 1 : 1 - d.n;
            if (by != 1) at[i] = 0;
            p.a = (const char *)p.a + by * d.a;
            p.b = (const char *)p.b + by * d.b;
            p.c = (char *)p.c + by * d.c;
            if (p.added) p.added = (const char *)p.added + by * d.added;
            if (by == 1) break;
        }
    }
}

/* -- sums that are not part of the products: scaled ones, and those whose columns are apart -- */
struct addition {
    const struct batch *batch;
    const char *added;
    ssize_t row, column; /* steps of `added` in elements */
    double alpha, beta;
};

/* Where the part of `added` for an item of the batch begins, in bytes. */
static ssize_t offset_of(const struct batch *batch, ssize_t item) {
    ssize_t offset = 0;
    for (int i = batch->ndim - 1; i >= 0; i--) {
        offset += item % batch->dimensions[i].n * batch->dimensions[i].added;
        item /= batch->dimensions[i].n;
    }
    return offset;
}

#define TEMPLATE "gemm/gemm_sum.inc"
#include "core/each_real.h"
#define TEMPLATE "gemm/gemm_sum.inc"
#include "gemm/gemm_integers.h"

/* -- the kernel -- */
struct implementation {
    multiplication *multiply; /* NULL if there is none */
    range_task add_rows;      /* NULL if products take any `added`, and factors */
    enum dtype result;
};

multiplication *half_multiplication(enum dtype dtype, int products) {
    if (dtype == FLOAT16) return products == BY_TILES ? multiply_f16_by_tiles : multiply_f16;
    if (products == BY_TILES) return multiply_bf16_by_tiles;
    return products == BY_PAIRS ? multiply_bf16_by_pairs : multiply_bf16;
}

/* What multiplies numbers of a type. */
static struct implementation implementation_of(enum dtype type, int products) {
    switch (type) {
    case FLOAT32: return (struct implementation){multiply_f32, add_rows_f32, type};
    case FLOAT64: return (struct implementation){multiply_f64, add_rows_f64, type};
    case INT32:
    case UINT32: return (struct implementation){multiply_u32, add_rows_u32, type};
    case INT64:
    case UINT64: return (struct implementation){multiply_u64, add_rows_u64, type};
    case BFLOAT16:
    case FLOAT16: return (struct implementation){half_multiplication(type, products), NULL, type};
    case INT8:
        if (products == BY_PAIRS) return (struct implementation){multiply_i8_by_quads, NULL, INT32};
        return (struct implementation){products == BY_TILES ? multiply_i8_by_tiles : multiply_i8, NULL, INT32};
    default: return (struct implementation){NULL, NULL, type};
    }
}

/* The products a b as a batch with all steps; false if the shapes do not fit. */
static bool lay_out(array a, array b, array added, array c, int transposed, struct batch *batch,
                    struct addition *addition) {
    if (a->ndim < 1 || b->ndim < 1 || a->ndim > MAX_DIMS || b->ndim > MAX_DIMS) return false;
    ssize_t size = (ssize_t)size_of(dtype_of(c));
    struct matrix left = matrix_of(a, false, transposed & 1), right = matrix_of(b, true, transposed & 2);
    int rows = a->ndim > 1, columns = b->ndim > 1; /* whether c has them as dimensions */
    int ndim = (a->ndim > b->ndim ? a->ndim : b->ndim) - 2;
    if (ndim < 0) ndim = 0;
    if (c->ndim != ndim + rows + columns || left.columns != right.rows || (added && added->ndim > c->ndim))
        return false;
    if ((rows && c->shape[ndim] != left.rows) || (columns && c->shape[c->ndim - 1] != right.columns)) return false;
    batch->product = (struct product){
        left.rows, right.columns, left.columns, a->data,       b->data, NULL,           c->data,       left.row,
        left.column, right.row, right.column,   0, right.columns, 1,    addition->alpha, addition->beta};
    batch->ndim = 0;
    for (int i = 0; i < ndim; i++) {
        struct dimension d = {.n = c->shape[i], .c = c->strides[i]};
        int before = ndim - i; /* the dimension's place before the matrices' */
        if (!step_of(a, before + 1, d.n, &d.a) || !step_of(b, before + 1, d.n, &d.b)) return false;
        if (added && !step_of(added, before - 1 + rows + columns, d.n, &d.added)) return false;
        if (d.n != 1) batch->dimensions[batch->ndim++] = d;
    }
    ssize_t row = 0, column = 0;
    if (added && rows && !step_of(added, columns, left.rows, &row)) return false;
    if (added && columns && !step_of(added, 0, right.columns, &column)) return false;
    addition->row = row / size, addition->column = column / size;
    return true;
}

int matmul(uintptr_t input, uintptr_t other, uintptr_t addend, int transposed, double beta, double alpha, int products,
           uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    array a = ARRAY(input), b = ARRAY(other), added = ARRAY(addend), c = ARRAY(output);
    enum dtype type = dtype_of(a);
    struct implementation with = implementation_of(type, products);
    if (!with.multiply || dtype_of(b) != type || dtype_of(c) != with.result || (added && dtype_of(added) != type))
        return WRONG_DTYPE;
    if (type == INT8 && (c->ndim != 2 || added || alpha != 1)) return UNSUPPORTED;
    if (!has_whole_strides(a) || !has_whole_strides(b) || (added && !has_whole_strides(added)) || !is_contiguous(c))
        return UNSUPPORTED;
    struct batch batch; /* its many dimensions are not worth clearing */
    batch.multiply = with.multiply;
    batch.failed = false;
    if (!with.add_rows && beta == 0) added = NULL;
    struct addition addition = {.batch = &batch, .alpha = alpha, .beta = beta};
    bool plain = alpha == 1 && beta == 1;
    if (!lay_out(a, b, added, c, transposed, &batch, &addition)) return WRONG_SHAPE;
    struct product *p = &batch.product;
    bool fused = added && (!with.add_rows || (plain && (addition.column == 1 || p->n == 1)));
    if (fused) p->added = added->data, p->added_row = addition.row, p->added_column = addition.column;
    if (fused || !added) {
        join_rows(&batch, (ssize_t)size_of(type));
        choose_rows(&batch, (ssize_t)size_of(type));
    }
    ssize_t count = 1, work = p->m * p->n * p->k;
    for (int i = 0; i < batch.ndim; i++) count *= batch.dimensions[i].n;
    if (count == 0 || p->m == 0 || p->n == 0) return OK;
    if (count == 1 || (work >= ALONE_WORK && count < 4 * thread_count())) multiply_batch(&batch, 0, count);
    else parallel_for(count, grain_for(100 + work / 32), multiply_batch, &batch);
    if (batch.failed) return NO_MEMORY;
    if (fused || !added) return OK;
    addition.added = added->data;
    parallel_for(count * p->m, grain_for(p->n), with.add_rows, &addition);
    return OK;
}
