/* The gradient of picking rows of a table. */
#include "core/array.h"
#include "kernels.h"
#include "core/memory.h"
#include "indexing/positions.h"
#include "core/threads.h"
#include "core/widening.h"

#include <string.h>

/* The picks of row r are order[starts[r]] to order[starts[r + 1] - 1], in the order in which they came. */
struct picks {
    ssize_t *starts, *order;
};

struct gradient_job {
    struct picks picks;
    const char *grad;
    char *output;
    ssize_t n, skipped; /* elements of a row; the row without gradient */
    bool shared;        /* each pick has an equal share */
    struct half half;
};

#define TEMPLATE "indexing/embedding.inc"
#include "core/each_real.h"

/* The same for half types, whose sums are floats until a row has all of its picks. */
static void sum_half_picks(void *context, ssize_t begin, ssize_t end) {
    enum { PART = 512 };
    const struct gradient_job *job = context;
    for (ssize_t row = begin; row < end; row++) {
        ssize_t first = job->picks.starts[row], count = row == job->skipped ? 0 : job->picks.starts[row + 1] - first;
        float share = job->shared && count ? 1 / (float)count : 1;
        for (ssize_t from = 0; from < job->n; from += PART) {
            ssize_t n = job->n - from < PART ? job->n - from : PART;
            float sum[PART] = {0}, grad[PART];
            for (ssize_t k = 0; k < count; k++) {
                job->half.widen(n, job->grad + 2 * (job->picks.order[first + k] * job->n + from), grad);
                for (ssize_t i = 0; i < n; i++) sum[i] += share * grad[i];
            }
            job->half.narrow(n, sum, job->output + 2 * (row * job->n + from));
        }
    }
}

/* Sort the picks by row, in one pass over them to count and one to place. */
static bool sort_picks(const struct positions *positions, ssize_t row_bytes, ssize_t rows, struct picks *picks) {
    picks->starts = allocate_items(rows + 2, sizeof(ssize_t));
    picks->order = allocate_items(positions->count, sizeof(ssize_t));
    if (!picks->starts || !picks->order) return false;
    ssize_t *next = picks->starts + 1; /* where a row's next pick goes; in the end, where the following row starts */
    memset(picks->starts, 0, (size_t)(rows + 2) * sizeof(ssize_t));
    for (ssize_t i = 0; i < positions->count; i++) next[positions->at[i] * positions->step / row_bytes + 1]++;
    for (ssize_t r = 0; r < rows; r++) next[r + 1] += next[r];
    for (ssize_t i = 0; i < positions->count; i++)
        picks->order[next[positions->at[i] * positions->step / row_bytes]++] = i;
    return true;
}

int embedding_gradient(uintptr_t grad, uintptr_t indices, intptr_t skipped, int shared, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    array g = ARRAY(grad), y = ARRAY(output), index = ARRAY(indices);
    enum dtype dtype = dtype_of(y);
    struct half half = half_of(dtype);
    if (dtype_of(g) != dtype || (dtype != FLOAT32 && dtype != FLOAT64 && !half.widen)) return WRONG_DTYPE;
    if (g->ndim != 2 || y->ndim != 2 || index->ndim != 1 || g->shape[0] != index->shape[0] ||
        g->shape[1] != y->shape[1] || !is_contiguous(g) || !is_contiguous(y))
        return WRONG_SHAPE;
    struct positions positions;
    enum status status = find_positions(y, 0, &indices, 1, false, &positions);
    ssize_t rows = y->shape[0], n = y->shape[1];
    if (status || n == 0) {
        if (!status) release(positions.at);
        return status;
    }
    struct gradient_job job = {.grad = g->data, .output = y->data, .n = n, .skipped = skipped, .shared = shared,
                               .half = half};
    range_task task = half.widen ? sum_half_picks : dtype == FLOAT32 ? sum_picks_f32 : sum_picks_f64;
    if (sort_picks(&positions, n * (ssize_t)size_of(dtype_of(y)), rows, &job.picks))
        parallel_for(rows, grain_for(16 + n / 8 * (1 + positions.count / (rows + 1))), task, &job);
    else status = NO_MEMORY;
    release(job.picks.starts), release(job.picks.order), release(positions.at);
    return status;
}
