/* Draws in proportion to weights, as docs/random.md defines them. */
#include "core/array.h"
#include "kernels.h"
#include "core/memory.h"
#include "random/philox.h"
#include "random/randomness.h"
#include "core/threads.h"

enum { CHUNK = 128 };

struct job {
    uint64_t seed, offset;
    const double *weights; /* [rows][n] */
    int64_t *out;          /* [rows][samples] */
    ssize_t n, samples;
    bool failed;
};

/* The long words numbered from `first` on, at most 2 CHUNK - 1 of them; the first one is at the result. */
static const uint64_t *long_words(const struct job *job, ssize_t first, ssize_t count, uint64_t *words) {
    philox(job->seed, job->offset + (uint64_t)first / 2, (first % 2 + count + 1) / 2, words);
    return words + first % 2;
}

/* The first index whose sum, of n ascending ones, is above the target; n - 1 if there is none. */
static ssize_t first_above(const double *sums, ssize_t n, double target) {
    const double *base = sums;
    for (; n > 1; n -= n / 2) base += base[n / 2 - 1] <= target ? n / 2 : 0;
    return base - sums;
}

static void draw_with_replacement(void *context, ssize_t begin, ssize_t end) {
    struct job *job = context;
    uint64_t words[2 * CHUNK];
    double *sums = allocate_items(job->n, sizeof *sums);
    if (!sums) {
        job->failed = true;
        return;
    }
    for (ssize_t row = begin; row < end; row++) {
        double total = 0;
        for (ssize_t i = 0; i < job->n; i++) sums[i] = total += job->weights[row * job->n + i];
        for (ssize_t i = 0; i < job->samples; i += 2 * CHUNK - 2) {
            ssize_t first = row * job->samples + i, rest = job->samples - i;
            ssize_t count = rest < 2 * CHUNK - 2 ? rest : 2 * CHUNK - 2;
            const uint64_t *drawn = long_words(job, first, count, words);
            for (ssize_t j = 0; j < count; j++)
                job->out[first + j] = first_above(sums, job->n, fraction(drawn[j] >> 11) * total);
        }
    }
    release(sums);
}

struct arrival {
    double time;
    int64_t index;
};

static bool before(struct arrival a, struct arrival b) { return a.time != b.time ? a.time < b.time : a.index < b.index; }

/* Let the arrival at `parent` sink in a heap whose first one is the latest. */
static void sink(struct arrival *heap, ssize_t parent, ssize_t n) {
    struct arrival x = heap[parent];
    for (ssize_t child; (child = 2 * parent + 1) < n; parent = child) {
        if (child + 1 < n && before(heap[child], heap[child + 1])) child++;
        if (!before(x, heap[child])) break;
        heap[parent] = heap[child];
    }
    heap[parent] = x;
}

/* The earliest arrivals of each row, in a heap that holds as many as there are samples. */
static void draw_without_replacement(void *context, ssize_t begin, ssize_t end) {
    struct job *job = context;
    const ssize_t samples = job->samples;
    uint64_t words[2 * CHUNK];
    double times[2 * CHUNK];
    struct arrival *heap = allocate_items(samples, sizeof *heap);
    if (!heap) {
        job->failed = true;
        return;
    }
    for (ssize_t row = begin; row < end; row++) {
        for (ssize_t i = 0; i < job->n; i += 2 * CHUNK - 2) {
            ssize_t first = row * job->n + i, rest = job->n - i, count = rest < 2 * CHUNK - 2 ? rest : 2 * CHUNK - 2;
            const uint64_t *drawn = long_words(job, first, count, words);
            for (ssize_t j = 0; j < count; j++)
                times[j] = -log_of_fraction(open_of_long_word(drawn[j])) / job->weights[first + j];
            for (ssize_t j = 0; j < count; j++) {
                struct arrival next = {times[j], i + j};
                if (i + j < samples) {
                    heap[i + j] = next;
                    if (i + j == samples - 1)
                        for (ssize_t parent = samples / 2 - 1; parent >= 0; parent--) sink(heap, parent, samples);
                } else if (next.time < heap[0].time) {
                    heap[0] = next;
                    sink(heap, 0, samples);
                }
            }
        }
        for (ssize_t i = samples - 1; i >= 0; i--) {
            job->out[row * samples + i] = heap[0].index;
            heap[0] = heap[i];
            sink(heap, 0, i);
        }
    }
    release(heap);
}

int multinomial_at(uintptr_t weights, intptr_t samples, int replacement, uint64_t seed, uint64_t offset, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    array w = ARRAY(weights), y = ARRAY(output);
    if (dtype_of(w) != FLOAT64 || dtype_of(y) != INT64) return WRONG_DTYPE;
    if (!w->ndim || y->ndim != w->ndim || !is_contiguous(w) || !is_contiguous(y)) return WRONG_SHAPE;
    struct job job = {seed, offset, (const double *)w->data, (int64_t *)y->data, w->shape[w->ndim - 1], samples, false};
    ssize_t rows = 1;
    for (int i = 0; i < w->ndim - 1; i++) {
        if (w->shape[i] != y->shape[i]) return WRONG_SHAPE;
        rows *= w->shape[i];
    }
    if (samples < 0 || y->shape[y->ndim - 1] != samples || (!replacement && samples > job.n)) return WRONG_SHAPE;
    if (!samples) return OK;
    if (!job.n) return rows ? WRONG_SHAPE : OK;
    if (replacement) parallel_for(rows, grain_for(2 * job.n + 40 * samples), draw_with_replacement, &job);
    else parallel_for(rows, grain_for(10 * job.n), draw_without_replacement, &job);
    return job.failed ? NO_MEMORY : OK;
}
