/* Recurrences over packed sequences, all steps in one call: simple, long short-term memory, gated recurrent units. */
#include "recurrent/recurrent.h"
#include "recurrent/recurrent_halves.h"
#include "core/array.h"
#include "gemm/gemm.h"
#include "kernels.h"
#include "core/mathematics.h"
#include "core/memory.h"
#include "core/panel.h"
#include "core/sizes.h"
#include "core/threads.h"
#include "core/widening.h"

#include <stdatomic.h>
#include <string.h>

int read_sequence(ssize_t count, const ssize_t *batch_sizes, bool reverse, struct sequence *sequence) {
    if (count < 1) return WRONG_SHAPE;
    *sequence = (struct sequence){count, 0, batch_sizes[0], NULL};
    for (ssize_t t = 0; t < count; t++) {
        if (batch_sizes[t] < 0 || (t && batch_sizes[t] > batch_sizes[t - 1])) return WRONG_SHAPE;
        sequence->rows += batch_sizes[t];
    }
    sequence->steps = allocate_items(count, sizeof *sequence->steps);
    if (!sequence->steps) return NO_MEMORY;
    ssize_t start = reverse ? sequence->rows : 0, previous = 0, before = 0;
    for (ssize_t i = 0; i < count; i++) {
        ssize_t size = batch_sizes[reverse ? count - 1 - i : i];
        if (reverse) start -= size;
        sequence->steps[i] = (struct step){start, size, previous, before < size ? before : size};
        previous = start;
        before = size;
        if (!reverse) start += size;
    }
    return OK;
}

/* The rows of the first sequences. */
static ssize_t rows_of_first(const struct sequence *sequence, ssize_t sequences) {
    ssize_t rows = 0;
    for (ssize_t t = 0; t < sequence->count; t++)
        rows += sequence->steps[t].size < sequences ? sequence->steps[t].size : sequences;
    return rows;
}

ssize_t first_of_part(const struct sequence *sequence, ssize_t part, ssize_t parts) {
    ssize_t low = 0, high = sequence->batch; /* the least number of sequences with at least the wanted rows */
    if (part == parts) return high;
    while (low < high) {
        ssize_t middle = (low + high) / 2;
        if (rows_of_first(sequence, middle) * parts < sequence->rows * part)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

ssize_t parts_of(const struct sequence *sequence, ssize_t cost) {
    enum { FEWEST_SEQUENCES = 4 };
    ssize_t parts = sequence->rows / grain_for(cost), threads = thread_count();
    if (parts > sequence->batch / FEWEST_SEQUENCES) parts = sequence->batch / FEWEST_SEQUENCES;
    if (parts > threads) parts = threads;
    return parts < 1 ? 1 : parts;
}

/* The kinds, as Python numbers them. */
enum kind { RELU, TANH, LSTM, GRU, KINDS };
static const ssize_t gates_of[KINDS] = {1, 1, 4, 3}, saved_gates_of[KINDS] = {0, 0, 4, 4};

/* The arrays of a call; those that it does not have are NULL. products: what multiplies half types. */
struct arrays {
    int products;
    array input, hx, cx, weight, bias, output, saved, cells, state, cell;
    array grad_output, grad_hn, grad_cn, grad_saved, grad_cells, grad_input, grad_weight, grad_bias;
};

static char *data_of(array a) { return a ? a->data : NULL; }

enum { CELL_COST = 2 }; /* elementary steps of a gate, computed by vectors */

/* The sigmoid as a gate: as exact as `sigmoid` beside 1, and 0 where that is below 1e-37, in a shorter time. */
static inline float gate_f32(float x) {
    float y = x < -87 ? -87 : x > 87 ? 87 : x;
    return x < -87 ? 0 : 1 / (1 + power_of_two_f32(y * -1.44269504f));
}

static inline double gate_f64(double x) { return sigmoid(x); }

#define TEMPLATE "recurrent/recurrent.inc"
#include "core/each_real.h"
#define TEMPLATE "recurrent/recurrent_cells.inc"
#include "core/each_real.h"
#define TEMPLATE "recurrent/recurrent_kinds.inc"
#include "core/each_real.h"

/* Whether an array, if there is one, is dense, of this dtype, and of (rows, columns). */
static bool is_matrix(array a, enum dtype dtype, ssize_t rows, ssize_t columns) {
    return !a || (has_shape(a, 2, (ssize_t[]){rows, columns}) && is_contiguous(a) && dtype_of(a) == dtype);
}

/* The same for (size). */
static bool is_vector(array a, enum dtype dtype, ssize_t size) {
    return !a || (has_shape(a, 1, &size) && is_contiguous(a) && dtype_of(a) == dtype);
}

/* Checks a call's arrays. */
static enum status check(int kind, const struct sequence *sequence, const struct arrays *of) {
    if (kind < 0 || kind >= KINDS) return UNSUPPORTED;
    bool has_cell = kind == LSTM, has_saved = saved_gates_of[kind];
    if (of->hx->ndim != 2 || (has_saved && !of->saved)) return WRONG_SHAPE;
    if (has_cell && !(of->cx && of->cell && of->cells)) return WRONG_SHAPE;
    ssize_t rows = sequence->rows, n = of->hx->shape[1], columns = gates_of[kind] * n, saved = saved_gates_of[kind] * n;
    enum dtype dtype = dtype_of(of->hx);
    array states[] = {of->hx, of->cx, of->state, of->cell, of->grad_hn, of->grad_cn};
    array outputs[] = {of->output, of->cells, of->grad_output, of->grad_cells};
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (!is_matrix(states[i], dtype, sequence->batch, n)) return WRONG_SHAPE;
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++)
        if (!is_matrix(outputs[i], dtype, rows, n)) return WRONG_SHAPE;
    return is_matrix(of->input, dtype, rows, columns) && is_matrix(of->grad_input, dtype, rows, columns) &&
                   is_matrix(of->saved, dtype, rows, saved) && is_matrix(of->grad_saved, dtype, rows, saved) &&
                   is_matrix(of->weight, dtype, columns, n) && is_matrix(of->grad_weight, dtype, columns, n) &&
                   is_vector(of->bias, dtype, columns) && is_vector(of->grad_bias, dtype, columns)
               ? OK
               : WRONG_SHAPE;
}

static int run(int kind, ssize_t count, const ssize_t *batch_sizes, bool reverse, const struct arrays *of, bool back) {
    struct sequence sequence;
    int status = read_sequence(count, batch_sizes, reverse, &sequence);
    if (status) return status;
    status = check(kind, &sequence, of);
    if (!status) {
        switch (computed_in(dtype_of(of->hx))) {
        case FLOAT32: status = run_kind_f32((enum kind)kind, &sequence, of, back); break;
        case FLOAT64: status = run_kind_f64((enum kind)kind, &sequence, of, back); break;
        default: status = WRONG_DTYPE;
        }
    }
    release(sequence.steps);
    return status;
}

int recurrence(int kind, intptr_t count, const intptr_t *batch_sizes, int reverse, int products, uintptr_t input,
               uintptr_t hx, uintptr_t cx, uintptr_t weight, uintptr_t bias, uintptr_t output, uintptr_t hn,
               uintptr_t cn, uintptr_t gates, uintptr_t cells) {
    if (!WRITABLE(output, hn, cn, gates, cells)) return READ_ONLY;
    struct arrays of = {
        .products = products,
        .input = ARRAY(input), .hx = ARRAY(hx), .cx = ARRAY(cx), .weight = ARRAY(weight), .bias = ARRAY(bias),
        .output = ARRAY(output), .state = ARRAY(hn), .cell = ARRAY(cn), .saved = ARRAY(gates), .cells = ARRAY(cells),
    };
    return run(kind, count, batch_sizes, reverse, &of, false);
}

int recurrence_backward(int kind, intptr_t count, const intptr_t *batch_sizes, int reverse, int products, uintptr_t hx,
                        uintptr_t cx, uintptr_t weight, uintptr_t output, uintptr_t gates, uintptr_t cells,
                        uintptr_t grad_output, uintptr_t grad_hn, uintptr_t grad_cn, uintptr_t grad_gates,
                        uintptr_t grad_cells, uintptr_t grad_input, uintptr_t grad_hx, uintptr_t grad_cx,
                        uintptr_t grad_weight, uintptr_t grad_bias) {
    if (!WRITABLE(grad_input, grad_hx, grad_cx, grad_weight, grad_bias)) return READ_ONLY;
    struct arrays of = {
        .products = products,
        .hx = ARRAY(hx), .cx = ARRAY(cx), .weight = ARRAY(weight), .output = ARRAY(output), .saved = ARRAY(gates),
        .cells = ARRAY(cells), .grad_output = ARRAY(grad_output), .grad_hn = ARRAY(grad_hn), .grad_cn = ARRAY(grad_cn),
        .grad_saved = ARRAY(grad_gates), .grad_cells = ARRAY(grad_cells), .grad_input = ARRAY(grad_input),
        .state = ARRAY(grad_hx), .cell = ARRAY(grad_cx),
        .grad_weight = ARRAY(grad_weight), .grad_bias = ARRAY(grad_bias),
    };
    if (kind == GRU && !grad_bias) return WRONG_SHAPE;
    return run(kind, count, batch_sizes, reverse, &of, true);
}
