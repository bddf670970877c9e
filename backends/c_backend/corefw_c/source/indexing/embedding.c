/* The gradient of picking rows of a table. */
#include "core/array.h"
#include "kernels.h"
#include "core/memory.h"
#include "indexing/positions.h"
#include "core/threads.h"

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
};

#define TEMPLATE "indexing/embedding.inc"
#include "core/each_real.h"

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
    if (dtype_of(g) != dtype_of(y) || (dtype_of(y) != FLOAT32 && dtype_of(y) != FLOAT64)) return WRONG_DTYPE;
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
    struct gradient_job job = {.grad = g->data, .output = y->data, .n = n, .skipped = skipped, .shared = shared};
    if (sort_picks(&positions, n * (ssize_t)size_of(dtype_of(y)), rows, &job.picks))
        parallel_for(rows, grain_for(16 + n / 8 * (1 + positions.count / (rows + 1))),
                     dtype_of(y) == FLOAT32 ? sum_picks_f32 : sum_picks_f64, &job);
    else status = NO_MEMORY;
    release(job.picks.starts), release(job.picks.order), release(positions.at);
    return status;
}
