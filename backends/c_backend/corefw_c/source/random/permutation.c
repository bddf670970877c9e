/* The stable order of random keys, as docs/random.md defines permutations.
 *
 * Keys are uniform, so their leading bits alone share them evenly: first among coarse buckets of some 1024 keys, counted
 * beforehand, and then each coarse bucket among fine ones of some 12 keys. Sixteen fine buckets side by side are the columns
 * of a matrix, which a network of comparisons sorts at once. Its elements have 21 bits of the key and the place in the coarse
 * bucket; the few fine buckets in which these bits do not decide, or which are too full, are ordered by their whole keys. */
#include "core/array.h"
#include "kernels.h"
#include "core/memory.h"
#include "random/philox.h"
#include "core/threads.h"

#include <string.h>

enum { COARSE = 1024, LARGEST = 2048, FINE = 12, ROWS = 32, LANES = 16, CHUNK = 128 };
static const uint32_t PLACES = LARGEST - 1;
enum { GROUPS = (LARGEST / FINE + LANES) / LANES };

struct stream {
    uint64_t seed, offset;
};

/* -- a few indices by their whole keys -- */
static uint64_t key_of(struct stream stream, uint64_t index) {
    uint64_t words[2 * PHILOX_GROUP];
    philox(stream.seed, stream.offset + index / 2, 1, words);
    return words[index % 2];
}

struct keyed {
    uint64_t key, index;
};

static bool before(struct keyed a, struct keyed b) { return a.key != b.key ? a.key < b.key : a.index < b.index; }

/* Let the element at `parent` sink in a heap whose first one is the largest. */
static void sink(struct keyed *heap, ssize_t parent, ssize_t n) {
    struct keyed x = heap[parent];
    for (ssize_t child; (child = 2 * parent + 1) < n; parent = child) {
        if (child + 1 < n && before(heap[child], heap[child + 1])) child++;
        if (!before(x, heap[child])) break;
        heap[parent] = heap[child];
    }
    heap[parent] = x;
}

/* Order n indices by their keys; false if there is no memory. */
static bool order_exactly(struct stream stream, ssize_t n, int64_t *indices) {
    struct keyed *heap = allocate_items(n, sizeof *heap);
    if (!heap) return false;
    for (ssize_t i = 0; i < n; i++) heap[i] = (struct keyed){key_of(stream, (uint64_t)indices[i]), (uint64_t)indices[i]};
    for (ssize_t i = n / 2 - 1; i >= 0; i--) sink(heap, i, n);
    for (ssize_t i = n - 1; i >= 0; i--) {
        indices[i] = (int64_t)heap[0].index;
        heap[0] = heap[i];
        sink(heap, 0, i);
    }
    release(heap);
    return true;
}

/* -- one coarse bucket -- */
/* Sort the columns of a matrix whose rows from `used` on hold the largest number (Batcher's odd-even merge sort). */
static void sort_columns(uint32_t rows[ROWS][LANES], int used) {
    for (int p = 1; p < used; p *= 2)
        for (int k = p; k >= 1; k /= 2)
            for (int j = k & (p - 1); j + k < used; j += 2 * k) {
                if ((j ^ (j + k)) & -2 * p) continue; /* in different blocks of 2 p rows */
                uint32_t *restrict a = rows[j], *restrict b = rows[j + k];
                int pairs = (j + 2 * k <= used ? k : used - j - k) * LANES;
                for (int l = 0; l < pairs; l++) {
                    uint32_t smaller = a[l] < b[l] ? a[l] : b[l], larger = a[l] < b[l] ? b[l] : a[l];
                    a[l] = smaller;
                    b[l] = larger;
                }
            }
}

/* Order the n <= LARGEST indices in the low halves of `items` by the keys that go on in their high halves. */
static bool order_bucket(struct stream stream, ssize_t n, const uint64_t *items, int64_t *out) {
    _Alignas(64) uint32_t elements[GROUPS * ROWS * LANES]; /* a matrix for each 16 fine buckets */
    uint32_t next[GROUPS * LANES];                         /* where the next element of each fine bucket belongs */
    const uint32_t fine = (uint32_t)n / FINE + 1, groups = (fine + LANES - 1) / LANES;
    for (uint32_t b = 0; b < groups * LANES; b++) next[b] = b / LANES * (ROWS * LANES) + b % LANES;
    for (ssize_t i = 0; i < n; i++) {
        uint64_t product = (items[i] >> 32) * fine; /* bucket and, below the point, what orders its keys */
        uint64_t bucket = product >> 32;
        uint32_t at = next[bucket];
        if (at / (ROWS * LANES) != bucket / LANES) { /* its column is full */
            for (ssize_t j = 0; j < n; j++) out[j] = (int64_t)(items[j] & 0xFFFFFFFF);
            return order_exactly(stream, n, out);
        }
        next[bucket] = at + LANES;
        elements[at] = ((uint32_t)product & ~PLACES) | (uint32_t)i;
    }
    const uint32_t last = ~PLACES | (uint32_t)(n - 1); /* no element is greater, and it has a place */
    const int64_t *end = out + n;
    for (uint32_t g = 0; g < groups; g++) {
        uint32_t(*rows)[LANES] = (uint32_t(*)[LANES])elements + g * ROWS, sizes[LANES], used = 0, ties[LANES] = {0};
        for (int l = 0; l < LANES; l++) {
            sizes[l] = next[g * LANES + l] / LANES - g * ROWS;
            used = sizes[l] > used ? sizes[l] : used;
        }
        for (uint32_t row = 0; row < used; row++)
            for (int l = 0; l < LANES; l++) rows[row][l] = row < sizes[l] ? rows[row][l] : last;
        sort_columns(rows, (int)used);
        for (uint32_t row = 1; row < used; row++)
            for (int l = 0; l < LANES; l++)
                ties[l] |= (row < sizes[l]) & ((rows[row][l] ^ rows[row - 1][l]) <= PLACES);
        for (int l = 0; l < LANES; l++) {
            ssize_t size = sizes[l], copied = end - out >= used ? used : size; /* the next column replaces the rest */
            for (ssize_t row = 0; row < copied; row++) out[row] = (int64_t)(items[rows[row][l] & PLACES] & 0xFFFFFFFF);
            if (ties[l] && !order_exactly(stream, size, out)) return false;
            out += size;
        }
    }
    return true;
}

/* -- the whole -- */
struct job {
    struct stream stream;
    ssize_t n, pieces, piece; /* the keys are dealt in pieces, */
    int bits;                 /* by so many leading bits, */
    ssize_t *next;            /* to where the next item of each piece and bucket belongs, */
    uint64_t *items;
    int64_t *out;
    bool failed;
};

/* The bucket of a key, and the item of key and index: what follows the bucket's bits, and the index. */
static inline uint64_t bucket_of(const struct job *job, uint64_t key) { return key >> 1 >> (63 - job->bits); }
static inline uint64_t item_of(const struct job *job, uint64_t key, ssize_t index) {
    return (key << job->bits & 0xFFFFFFFF00000000) | (uint64_t)index;
}

/* Make the keys of pieces, kept in `out` until they are dealt, and count those of each bucket. */
static void count_pieces(void *context, ssize_t begin, ssize_t end) {
    const struct job *job = context;
    uint64_t words[2 * CHUNK];
    for (ssize_t p = begin; p < end; p++) {
        ssize_t *counts = job->next + (p << job->bits);
        ssize_t stop = (p + 1) * job->piece < job->n ? (p + 1) * job->piece : job->n;
        for (ssize_t first = p * job->piece; first < stop; first += 2 * CHUNK) { /* pieces are even: whole blocks */
            ssize_t count = stop - first < 2 * CHUNK ? stop - first : 2 * CHUNK;
            philox(job->stream.seed, job->stream.offset + (uint64_t)first / 2, (count + 1) / 2, words);
            for (ssize_t i = 0; i < count; i++) counts[bucket_of(job, words[i])]++;
            memcpy(job->out + first, words, (size_t)count * sizeof *words);
        }
    }
}

static void deal_pieces(void *context, ssize_t begin, ssize_t end) {
    const struct job *job = context;
    const uint64_t *keys = (const uint64_t *)job->out;
    for (ssize_t p = begin; p < end; p++) {
        ssize_t *next = job->next + (p << job->bits);
        ssize_t stop = (p + 1) * job->piece < job->n ? (p + 1) * job->piece : job->n;
        for (ssize_t i = p * job->piece; i < stop; i++)
            job->items[next[bucket_of(job, keys[i])]++] = item_of(job, keys[i], i);
    }
}

/* The last piece's `next` is where its bucket ends after dealing. */
static void order_buckets(void *context, ssize_t begin, ssize_t end) {
    struct job *job = context;
    const ssize_t *ends = job->next + ((job->pieces - 1) << job->bits);
    for (ssize_t b = begin; b < end; b++) {
        ssize_t start = b ? ends[b - 1] : 0, n = ends[b] - start;
        if (n <= LARGEST) {
            if (!order_bucket(job->stream, n, job->items + start, job->out + start)) job->failed = true;
        } else {
            for (ssize_t i = start; i < ends[b]; i++) job->out[i] = (int64_t)(job->items[i] & 0xFFFFFFFF);
            if (!order_exactly(job->stream, n, job->out + start)) job->failed = true;
        }
    }
}

int permutation_at(uint64_t seed, uint64_t offset, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    array y = ARRAY(output);
    if (dtype_of(y) != INT64) return WRONG_DTYPE;
    if (y->ndim != 1 || !is_contiguous(y)) return WRONG_SHAPE;
    struct job job = {.stream = {seed, offset}, .n = y->shape[0], .out = (int64_t *)y->data, .pieces = 1};
    if (job.n >> 32) return UNSUPPORTED;
    const ssize_t grain = grain_for(20);
    while (job.n >> job.bits > COARSE) job.bits++;
    if (job.n >= 2 * grain) job.pieces = job.n / grain < thread_count() ? job.n / grain : thread_count();
    job.piece = ((job.n + job.pieces - 1) / job.pieces + 1) / 2 * 2;
    const ssize_t buckets = (ssize_t)1 << job.bits;
    job.next = allocate_items(job.pieces * buckets, sizeof *job.next);
    job.items = allocate_items(job.n, sizeof *job.items);
    job.failed = !job.next || !job.items;
    if (!job.failed) {
        memset(job.next, 0, (size_t)(job.pieces * buckets) * sizeof *job.next);
        parallel_for(job.pieces, 1, count_pieces, &job);
        ssize_t total = 0;
        for (ssize_t b = 0; b < buckets; b++)
            for (ssize_t p = 0; p < job.pieces; p++) {
                ssize_t count = job.next[(p << job.bits) + b];
                job.next[(p << job.bits) + b] = total;
                total += count;
            }
        parallel_for(job.pieces, 1, deal_pieces, &job);
        parallel_for(buckets, grain / COARSE, order_buckets, &job);
    }
    release(job.items);
    release(job.next);
    return job.failed ? NO_MEMORY : OK;
}
