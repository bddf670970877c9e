/* The stable order of random keys, as docs/random.md defines permutations.
 *
 * Keys are uniform, so their leading bits alone share them evenly: first among coarse buckets of some 1024 keys, counted
 * beforehand, and then each coarse bucket among fine ones of some 12 keys. Sixteen fine buckets side by side are the columns
 * of a matrix, which a network of comparisons sorts at once. Its elements have 21 bits of the key and the place in the coarse
 * bucket; the few fine buckets in which these bits do not decide, or which are too full, are ordered by their whole keys. */
#include "array.h"
#include "kernels.h"
#include "memory.h"
#include "philox.h"
#include "threads.h"

#include <string.h>

enum { COARSE = 1024, LARGEST = 2048, PLACE_BITS = 11, FINE = 12, ROWS = 32, LANES = 16, CHUNK = 128 };
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
    struct keyed *heap = allocate((size_t)n * sizeof *heap);
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
    _Alignas(64) uint32_t matrix[GROUPS][ROWS][LANES];
    uint8_t count[GROUPS * LANES] = {0};
    const uint64_t fine = (uint64_t)n / FINE + 1;
    const int groups = (int)((fine + LANES - 1) / LANES);
    memset(matrix, 0xFF, (size_t)groups * sizeof *matrix);
    for (ssize_t i = 0; i < n; i++) {
        uint64_t product = (items[i] >> 32) * fine; /* bucket and, below the point, what orders its keys */
        uint64_t bucket = product >> 32;
        int row = count[bucket];
        if (row == ROWS) {
            for (ssize_t j = 0; j < n; j++) out[j] = (int64_t)(items[j] & 0xFFFFFFFF);
            return order_exactly(stream, n, out);
        }
        count[bucket] = (uint8_t)(row + 1);
        matrix[bucket / LANES][row][bucket % LANES] = ((uint32_t)product >> PLACE_BITS << PLACE_BITS) | (uint32_t)i;
    }
    for (int g = 0; g < groups; g++) {
        int used = 0;
        for (int l = 0; l < LANES; l++) used = count[g * LANES + l] > used ? count[g * LANES + l] : used;
        sort_columns(matrix[g], used);
        for (int l = 0; l < LANES; l++) {
            int size = count[g * LANES + l];
            uint32_t tie = 0, last = 0;
            for (int row = 0; row < size; row++) {
                uint32_t element = matrix[g][row][l];
                tie |= row && (element ^ last) >> PLACE_BITS == 0;
                out[row] = (int64_t)(items[element & (LARGEST - 1)] & 0xFFFFFFFF);
                last = element;
            }
            if (tie && !order_exactly(stream, size, out)) return false;
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

/* Count the keys of pieces in each bucket, or, if there are `items`, deal them. */
static inline void deal_pieces(const struct job *job, ssize_t begin, ssize_t end, uint64_t *items) {
    uint64_t words[2 * CHUNK];
    for (ssize_t p = begin; p < end; p++) {
        ssize_t *next = job->next + (p << job->bits);
        ssize_t stop = (p + 1) * job->piece < job->n ? (p + 1) * job->piece : job->n;
        for (ssize_t first = p * job->piece; first < stop; first += 2 * CHUNK) { /* pieces are even: whole blocks */
            ssize_t count = stop - first < 2 * CHUNK ? stop - first : 2 * CHUNK;
            philox(job->stream.seed, job->stream.offset + (uint64_t)first / 2, (count + 1) / 2, words);
            for (ssize_t i = 0; i < count; i++) {
                ssize_t place = next[bucket_of(job, words[i])]++;
                if (items) items[place] = item_of(job, words[i], first + i);
            }
        }
    }
}

static void count_pieces(void *context, ssize_t begin, ssize_t end) { deal_pieces(context, begin, end, NULL); }

static void deal(void *context, ssize_t begin, ssize_t end) {
    const struct job *job = context;
    deal_pieces(job, begin, end, job->items);
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
    array y = ARRAY(output);
    if (dtype_of(y) != INT64) return WRONG_DTYPE;
    if (y->ndim != 1 || !is_contiguous(y)) return WRONG_SHAPE;
    struct job job = {.stream = {seed, offset}, .n = y->shape[0], .out = (int64_t *)y->data, .pieces = 1};
    if (job.n >> 32) return UNSUPPORTED;
    while (job.n >> job.bits > COARSE) job.bits++;
    if (job.bits > 4) job.pieces = thread_count();
    job.piece = ((job.n + job.pieces - 1) / job.pieces + 1) / 2 * 2;
    const ssize_t buckets = (ssize_t)1 << job.bits;
    job.next = allocate((size_t)(job.pieces * buckets) * sizeof *job.next);
    job.items = allocate((size_t)job.n * sizeof *job.items);
    job.failed = !job.next || !job.items;
    if (!job.failed) {
        memset(job.next, 0, (size_t)(job.pieces * buckets) * sizeof *job.next);
        if (job.bits) parallel_for(job.pieces, 1, count_pieces, &job);
        ssize_t total = 0;
        for (ssize_t b = 0; b < buckets; b++)
            for (ssize_t p = 0; p < job.pieces; p++) {
                ssize_t count = job.next[(p << job.bits) + b];
                job.next[(p << job.bits) + b] = total;
                total += count;
            }
        parallel_for(job.pieces, 1, deal, &job);
        parallel_for(buckets, grain_for(20 * COARSE), order_buckets, &job);
    }
    release(job.items);
    release(job.next);
    return job.failed ? NO_MEMORY : OK;
}
