/* The gradient of the weight of convolutions of bfloat16, by an engine of products of pairs: patches by the gradient of the
 * result, summed over places. A row of patches is one tap of one channel at the places, gathered from the input or, where
 * windows leave it or have strides, from a padded copy. Few sums are split by places, so that a thread reads what it has copied
 * itself; of many, each thread has some. Either way they are added up in one order, whatever the number of threads. */
#include "convolution/convolution_packed.h"
#include "convolution/convolution_storage.h"

#include "core/halves.h"
#include "core/memory.h"
#include "core/sizes.h"
#include "core/threads.h"
#include "gemm/gemm_transpose.h"

#include <limits.h>
#include <stdatomic.h>
#include <string.h>

enum {
    STEP = 32,                    /* places whose pieces are found together */
    STRETCH = 8 * STEP,           /* that are multiplied at a time: their panels fit the first-level cache */
    PATCH_ROW = STRETCH + STEP,   /* the last piece of a row may be longer than it */
    FEWEST_PLACES = 512,          /* of a slab */
    SLAB_BYTES = 1 << 20,         /* of its copies, about, of few sums, */
    SHARED_BYTES = 4 << 20,       /* and of many, for which all threads wait */
    SPLITS = 8,                   /* of places, */
    SPLIT_BYTES = 256 << 10,      /* if there are at most so many sums */
};

struct weight_job {
    const struct engine *with;
    const struct convolution *problem;
    const uint16_t *input, *output_grad; /* of all groups */
    uint16_t *weight_grad;
    struct slabs slabs;
    bool uncopied;
    ssize_t rows, row_blocks, out_blocks; /* rows: taps of channels, as in the weight */
    ssize_t splits, size;          /* size: of the sums of a split */
    float *sums;                   /* [split][block of rows][block of result channels], if there are several */
    atomic_bool out_of_memory;
};

/* A slab of a group. */
struct weight_slab {
    const struct weight_job *job;
    ssize_t group;
    struct slab slab;
    struct layout layout;    /* of the copy or the input, whose channels lie `channel` apart */
    ssize_t places, channel;
    uint16_t *copy;
    const uint16_t *source;  /* the first place */
    ssize_t exact;           /* the first step of which no more than its places may be read */
    char *right;             /* the result's gradient: panels of blocks of channels, `panel` bytes apart */
    ssize_t panel;
    struct pieces *pieces;   /* of each step */
    ssize_t *offsets;        /* of rows, in the copy */
    float *sums;             /* of its split */
    ssize_t parts;           /* of the result channels, one for each task */
    bool first;
    atomic_bool out_of_memory;
};

/* -- copies -- */
/* Channels of the input, padded. */
static void copy_channels(void *context, ssize_t begin, ssize_t end) {
    const struct weight_slab *w = context;
    const struct convolution *p = w->job->problem;
    struct slab places = w->slab;
    places.first_sample = 0;
    memset(w->copy + begin * w->channel, 0, (size_t)((end - begin) * w->channel) * sizeof *w->copy);
    for (ssize_t plane = 0; plane < p->planes; plane++) {
        struct walk rows;
        ssize_t step = begin_plane(p, &places, &w->layout, plane, &rows);
        struct run run[RUNS];
        int runs;
        while (take_runs(&rows, INT_MAX, RUNS, run, &runs))
            for (ssize_t c = begin; c < end; c++)
                for (ssize_t s = 0; s < w->slab.samples; s++) {
                    ssize_t plane_of_input = ((w->slab.first_sample + s) * p->groups + w->group) * p->in_channels + c;
                    const uint16_t *input = w->job->input + plane_of_input * p->in_size;
                    uint16_t *copy = w->copy + c * w->channel + s * w->layout.sample;
                    for (int r = 0; r < runs; r++)
                        if (step == 1) copy_halves(run[r].length, input + run[r].source, copy + run[r].target);
                        else
                            for (ssize_t j = 0; j < run[r].length; j++)
                                copy[run[r].target + j] = input[run[r].source + j * step];
                }
    }
}

/* Panels of the result's gradient: stretches of blocks of channels. */
static void pack_gradient(void *context, ssize_t begin, ssize_t end) {
    const struct weight_slab *w = context;
    const struct convolution *p = w->job->problem;
    const struct engine *e = w->job->with;
    ssize_t stretches = blocks_of(w->places, STRETCH), each = w->places / w->slab.samples, before = 0;
    for (int i = 0; i < p->axes; i++) before = before * p->axis[i].out + w->slab.first[i];
    uint16_t lines[LINES][STRETCH];
    for (ssize_t item = begin; item < end; item++) {
        ssize_t block = item / stretches, from = item % stretches * STRETCH;
        ssize_t n = smaller(w->places - from, STRETCH), rows = smaller(p->out_channels - block * LINES, LINES);
        char *packed = w->right + block * w->panel + from / e->unit * e->right_bytes;
        if (from % each + n <= each) { /* of one sample */
            ssize_t plane = (w->slab.first_sample + from / each) * p->groups + w->group;
            const uint16_t *grad = w->job->output_grad + (plane * p->out_channels + block * LINES) * p->out_size;
            grad += before + from % each;
            ask_for_halves(rows, STRETCH, grad + STRETCH, p->out_size); /* the next item's */
            e->pack_right(n, (int)rows, grad, p->out_size, 1, packed);
            continue;
        }
        for (ssize_t i = 0; i < rows; i++)
            for (ssize_t k = 0, sample = from / each, at = from % each; k < n; sample++, at = 0) {
                ssize_t length = smaller(each - at, n - k);
                ssize_t plane = (w->slab.first_sample + sample) * p->groups + w->group;
                plane = plane * p->out_channels + block * LINES + i;
                memcpy(lines[i] + k, w->job->output_grad + plane * p->out_size + before + at, (size_t)length * 2);
                k += length;
            }
        e->pack_right(n, (int)rows, lines, STRETCH, 1, packed);
    }
}

/* -- the products -- */
static inline __attribute__((always_inline)) void gather_rows(const int count, const int width, ssize_t rows,
                                                              const struct piece *piece, const uint16_t *source,
                                                              const ssize_t *offsets, uint16_t *to) {
    for (ssize_t i = 0; i < rows; i++, to += PATCH_ROW)
        UNROLL for (int j = 0; j < count; j++)
            memcpy(to + piece[j].column, source + offsets[i] + piece[j].source, 2 * (size_t)width);
}

/* Some rows of patches of some steps. */
static void gather_patches(const struct weight_slab *w, ssize_t first, ssize_t last, ssize_t row, ssize_t rows,
                           uint16_t *patches) {
    const ssize_t *offsets = w->offsets + row;
    const uint16_t *source = w->source;
    for (ssize_t s = first; s < last; s++, patches += STEP) {
        const struct pieces *pieces = &w->pieces[s];
        if (pieces->columns < STEP || s >= w->exact) { /* what is beyond the last place must be no NaN */
            for (ssize_t i = 0; i < rows; i++) {
                memset(patches + i * PATCH_ROW, 0, 2 * STEP);
                for (int j = 0; j < pieces->count; j++) {
                    const struct piece *piece = &pieces->piece[j];
                    ssize_t next = j + 1 < pieces->count ? piece[1].column : pieces->columns;
                    memcpy(patches + i * PATCH_ROW + piece->column, source + offsets[i] + piece->source,
                           2 * (size_t)(next - piece->column));
                }
            }
            continue;
        }
#define GATHER(count, width) gather_rows(count, width, rows, pieces->piece, source, offsets, patches)
        GATHER_BY_WIDTH(pieces, STEP);
#undef GATHER
    }
}

/* Where k places begin in the rows of the source if they follow each other there, and rows are w->channel apart; or -1. */
static ssize_t start_in_rows(const struct weight_slab *w, ssize_t from, ssize_t k) {
    ssize_t each = w->places / w->slab.samples;
    if (!w->job->uncopied || w->job->problem->taps > 1 || from % each + k > each) return -1;
    return from / each * w->layout.sample + from % each;
}

/* Items: blocks of rows, by parts of the result channels. */
static void multiply_items(void *context, ssize_t begin, ssize_t end) {
    struct weight_slab *w = context;
    const struct convolution *p = w->job->problem;
    const struct engine *e = w->job->with;
    ssize_t tile = (ssize_t)e->rows * LINES, size = (ssize_t)e->rows * PATCH_ROW;
    uint16_t *patches = allocate((size_t)size * sizeof *patches + (size_t)room_of(STRETCH / e->unit * e->left_bytes));
    if (!patches) {
        w->out_of_memory = true;
        return;
    }
    if (e->direct) memset(patches, 0, (size_t)size * sizeof *patches); /* rows beyond the last one are read */
    if (e->begin) e->begin();
    for (ssize_t item = begin; item < end; item++) {
        ssize_t part = item % w->parts, block = item / w->parts, row = block_start(e, w->job->rows, block);
        ssize_t first = w->job->out_blocks * part / w->parts, last = w->job->out_blocks * (part + 1) / w->parts;
        int rows = (int)(block_start(e, w->job->rows, block + 1) - row);
        float *sums = w->sums + block * w->job->out_blocks * tile;
        for (ssize_t from = 0; from < w->places; from += STRETCH) {
            ssize_t k = smaller(w->places - from, STRETCH);
            void *packed = patches + size;
            ssize_t start = e->direct ? -1 : start_in_rows(w, from, k);
            if (start < 0) gather_patches(w, from / STEP, blocks_of(from + k, STEP), row, rows, patches);
            if (start >= 0) e->pack_left(k, rows, w->source + w->offsets[row] + start, w->channel, 1, packed);
            else if (!e->direct) e->pack_left(k, rows, patches, PATCH_ROW, 1, packed);
            for (ssize_t out = first; out < last; out++) {
                const char *right = w->right + out * w->panel + from / e->unit * e->right_bytes;
                e->multiply(k, e->direct ? patches : packed, e->direct ? PATCH_ROW * sizeof *patches : 0, right, rows,
                            (int)smaller(p->out_channels - out * LINES, LINES), !w->first || from, sums + out * tile,
                            right);
            }
        }
    }
    if (e->end) e->end();
    release(patches);
}

/* -- results -- */
enum { PART = 128 }; /* rows that are written together, about */

/* The sums of a group. */
struct sums {
    const struct weight_job *job;
    ssize_t group;
    const float *sums;
};

/* Parts of the weight's gradient: some blocks of rows, of a block of result channels. */
static void put_weights(void *context, ssize_t begin, ssize_t end) {
    enum { FLOATS = VECTOR_BYTES / sizeof(float) };
    const struct sums *of = context;
    const struct weight_job *job = of->job;
    const struct convolution *p = job->problem;
    const struct engine *e = job->with;
    ssize_t most = PART / e->rows, tile = (ssize_t)e->rows * LINES;
    float block[PART][LINES], lines[LINES][PART];
    uint16_t *grad = job->weight_grad + of->group * p->out_channels * job->rows;
    for (ssize_t item = begin; item < end; item++) {
        ssize_t b = item / job->out_blocks * most, last = smaller(b + most, job->row_blocks), length = 0;
        ssize_t out = item % job->out_blocks, outs = smaller(p->out_channels - out * LINES, LINES);
        ssize_t row = block_start(e, job->rows, b);
        for (; b < last; b++) {
            ssize_t rows = block_start(e, job->rows, b + 1) - row - length;
            const float *sums = of->sums + (b * job->out_blocks + out) * tile;
            for (ssize_t i = 0; i < rows; i++, length++, sums += LINES) {
                memcpy(block[length], sums, sizeof block[length]);
                for (ssize_t split = 1; split < job->splits; split++)
                    for (int o = 0; o < LINES; o++) block[length][o] += sums[split * job->size + o];
            }
        }
        for (ssize_t i = 0; i < length; i += FLOATS)
            for (ssize_t o = 0; o < LINES; o += FLOATS) transpose_square_f32(block[i] + o, LINES, lines[o] + i, PART);
        for (ssize_t o = 0; o < outs; o++)
            narrow_bfloat16(length, lines[o], grad + (out * LINES + o) * job->rows + row);
    }
}

static void put_group(const struct weight_job *job, ssize_t group, const float *sums) {
    struct sums of = {job, group, sums};
    ssize_t parts = blocks_of(job->row_blocks, PART / job->with->rows);
    parallel_for(parts * job->out_blocks, grain_for(PART * LINES), put_weights, &of);
}

/* The sums of some splits of groups, each of which works alone where there are several. */
static void differentiate(void *context, ssize_t begin, ssize_t end) {
    struct weight_job *job = context;
    const struct convolution *p = job->problem;
    struct weight_slab w = {.job = job, .slab = slab_at(p, &job->slabs, 0), .parts = 1};
    const struct engine *e = job->with;
    ssize_t most = w.slab.samples;
    for (int i = 0; i < p->axes; i++) most *= w.slab.last[i] - w.slab.first[i];
    ssize_t steps = blocks_of(most, STEP);
    w.panel = size_times(blocks_of(most, e->unit), e->right_bytes);
    ssize_t copied = job->uncopied ? 0 : size_times(layout_of_copy(p, &w.slab).sample, w.slab.samples), laid = 0;
    w.copy = allocate_items(size_plus(copied, STEP), sizeof *w.copy);
    w.right = allocate_items(w.panel, (size_t)job->out_blocks);
    w.pieces = allocate_items(steps, sizeof *w.pieces);
    w.offsets = allocate_items(job->rows, sizeof *w.offsets);
    float *own = job->sums ? NULL : allocate_items(job->size, sizeof *own);
    if (!w.copy || !w.right || !w.pieces || !w.offsets || (!job->sums && !own)) {
        job->out_of_memory = true;
        end = begin;
    }
    while (job->row_blocks * w.parts < 2 * thread_count() && w.parts < job->out_blocks) w.parts++;
    for (ssize_t item = begin; item < end; item++) {
        ssize_t split = item % job->splits;
        ssize_t from = job->slabs.count * split / job->splits, to = job->slabs.count * (split + 1) / job->splits;
        w.group = item / job->splits;
        w.sums = job->sums ? job->sums + split * job->size : own;
        for (ssize_t i = from; i < to; i++) {
            w.first = i == from;
            w.slab = slab_at(p, &job->slabs, i);
            w.layout = job->uncopied ? layout_of_input(p, &w.slab, w.group) : layout_of_copy(p, &w.slab);
            w.channel = job->uncopied ? w.layout.channel : w.layout.channel * w.slab.samples;
            if (!job->uncopied) w.layout.sample = w.layout.channel;
            w.places = w.slab.samples;
            for (int a = 0; a < p->axes; a++) w.places *= w.slab.last[a] - w.slab.first[a];
            steps = blocks_of(w.places, STEP);
            w.exact = job->uncopied && i == job->slabs.count - 1 ? steps - 2 : steps;
            struct walk places = places_of_pass(p, &w.slab, &w.layout, 0);
            w.source = (job->uncopied ? job->input : w.copy) + places.source_start;
            places.source_start = 0;
            if (w.places != laid) { /* slabs of as many places are alike */
                begin_walk(&places);
                for (ssize_t s = 0; s < steps; s++) cut_into_pieces(&places, STEP, STEP, &w.pieces[s]);
                for (ssize_t row = 0; row < job->rows; row++)
                    w.offsets[row] = row / p->taps * w.channel + offset_of_tap(p, &w.layout, row % p->taps);
                laid = w.places;
            }
            if (!job->uncopied) parallel_for(p->in_channels, grain_for(w.channel / 8), copy_channels, &w);
            parallel_for(job->out_blocks * blocks_of(w.places, STRETCH), 1, pack_gradient, &w);
            ssize_t work = w.places * e->rows * p->out_channels / w.parts;
            parallel_for(job->row_blocks * w.parts, grain_for(work / 256), multiply_items, &w);
        }
        if (own) put_group(job, w.group, own);
    }
    if (w.out_of_memory) job->out_of_memory = true;
    release(own);
    release(w.offsets);
    release(w.pieces);
    release(w.right);
    release(w.copy);
}

bool weight_gradient_packed(const struct engine *e, const struct convolution *p, const uint16_t *input,
                            const uint16_t *output_grad, uint16_t *weight_grad) {
    struct weight_job job = {
        .with = e, .problem = p, .input = input, .output_grad = output_grad, .weight_grad = weight_grad};
    job.rows = p->in_channels * p->taps;
    job.row_blocks = blocks_of(job.rows, e->rows), job.out_blocks = blocks_of(p->out_channels, LINES);
    job.size = size_times(size_times(job.row_blocks, job.out_blocks), (ssize_t)e->rows * LINES);
    job.uncopied = is_unpadded(p);
    ssize_t channels = p->in_channels > p->out_channels && !job.uncopied ? p->in_channels : p->out_channels, all = p->samples;
    for (int i = 0; i < p->axes; i++) all *= p->axis[i].out;
    bool few = p->groups == 1 && job.size <= SPLIT_BYTES / (ssize_t)sizeof(float);
    ssize_t places = few ? smaller(SLAB_BYTES / 2 / channels, blocks_of(all, SPLITS)) : SHARED_BYTES / 2 / channels;
    job.slabs = cut_into_slabs(p, places < FEWEST_PLACES ? FEWEST_PLACES : places);
    job.splits = few ? smaller(SPLITS, job.slabs.count) : 1;
    if (job.splits > 1 && !(job.sums = allocate_items(size_times(job.splits, job.size), sizeof *job.sums))) return false;
    parallel_for(p->groups * job.splits, 1, differentiate, &job);
    if (job.sums && !job.out_of_memory) put_group(&job, 0, job.sums);
    release(job.sums);
    return !job.out_of_memory;
}
