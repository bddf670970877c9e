/* The gradient of the weight of convolutions of bfloat16, by the processor's tiles: patches by the gradient of the result,
 * summed over places. A row of a panel of patches is one channel of 32 places, for one tap, gathered from a padded copy of
 * the input. Few sums are split by places, so that a thread reads what it has copied itself; of many, each thread has some.
 * Either way they are added up in one order, whatever the number of threads. */
#include "convolution/convolution_tiles.h"

#include "core/halves.h"
#include "core/memory.h"
#include "core/sizes.h"
#include "core/threads.h"
#include "core/tiles.h"
#include "gemm/gemm_packed.h"
#include "gemm/gemm_transpose.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif
#include <limits.h>
#include <stdatomic.h>
#include <string.h>

enum {
    STRETCH_PLACES = STRETCH_STEPS * 2 * STEP_HALVES, /* that are multiplied at a time */
    FEWEST_PLACES = 512,                             /* of a slab */
    SLAB_BYTES = 1 << 20,                            /* of its copy, about */
    SPLITS = 8,                                      /* of places, */
    SPLIT_BYTES = 256 << 10,                         /* if there are at most so many sums */
    STEP_BYTES = 2 * TILE_BYTES,
    SUMS = LINES * LINES,
};

struct weight_job {
    const struct convolution *problem;
    const uint16_t *input, *output_grad; /* of all groups */
    uint16_t *weight_grad;
    struct slabs slabs;
    ssize_t in_blocks, out_blocks; /* of channels */
    ssize_t splits, size;          /* size: of the sums of a split */
    float *sums;                   /* [split][tap][block of input channels][block of result channels], if there are several */
    atomic_bool out_of_memory;
};

/* A slab of a group. */
struct weight_slab {
    const struct weight_job *job;
    ssize_t group;
    struct slab slab;
    struct layout layout;    /* of the copy, whose channels lie `channel` apart */
    ssize_t places, steps, channel;
    uint16_t *copy;
    char *right;             /* the result's gradient [block of channels][step] */
    struct pieces *pieces;   /* of each step */
    float *sums;             /* of its split */
    ssize_t parts;           /* of the result channels, one for each task */
    bool first;
    atomic_bool out_of_memory;
};

/* -- copies -- */
static inline void copy_halves(ssize_t n, const uint16_t *from, uint16_t *to) {
#if defined(__AVX512F__)
    for (ssize_t j = 0; j < n; j += 32) {
        __mmask32 there = n - j < 32 ? (1u << (n - j)) - 1 : ~0u;
        _mm512_mask_storeu_epi16(to + j, there, _mm512_maskz_loadu_epi16(there, from + j));
    }
#else
    memcpy(to, from, (size_t)n * sizeof *to);
#endif
}

/* Channels of the input, padded. */
static void copy_channels(void *context, ssize_t begin, ssize_t end) {
    const struct weight_slab *w = context;
    const struct convolution *p = w->job->problem;
    struct slab places = w->slab;
    places.first_sample = 0;
    for (ssize_t c = begin; c < end; c++) {
        uint16_t *copy = w->copy + c * w->channel;
        memset(copy, 0, (size_t)w->channel * sizeof *copy);
        for (ssize_t plane = 0; plane < p->planes; plane++) {
            struct walk rows = elements_of_plane(p, &places, &w->layout, plane);
            ssize_t step = rows.source[rows.axes - 1];
            rows.size[0] = smaller(rows.size[0], 1), rows.size[1] = smaller(rows.size[1], 1);
            struct run run[RUNS];
            int runs;
            begin_walk(&rows);
            while (take_runs(&rows, INT_MAX, RUNS, run, &runs))
                for (ssize_t s = 0; s < w->slab.samples; s++) {
                    ssize_t plane_of_input = ((w->slab.first_sample + s) * p->groups + w->group) * p->in_channels + c;
                    const uint16_t *input = w->job->input + plane_of_input * p->in_size;
                    for (int r = 0; r < runs; r++) {
                        const uint16_t *from = input + run[r].source;
                        uint16_t *to = copy + s * w->layout.sample + run[r].target;
                        if (step == 1) copy_halves(run[r].length, from, to);
                        else
                            for (ssize_t j = 0; j < run[r].length; j++) to[j] = from[j * step];
                    }
                }
        }
    }
}

/* Panels of the result's gradient: stretches of blocks of channels. */
static void pack_gradient(void *context, ssize_t begin, ssize_t end) {
    const struct weight_slab *w = context;
    const struct convolution *p = w->job->problem;
    ssize_t stretches = blocks_of(w->places, STRETCH_PLACES), each = w->places / w->slab.samples, before = 0;
    for (int i = 0; i < p->axes; i++) before = before * p->axis[i].out + w->slab.first[i];
    uint16_t lines[LINES][STRETCH_PLACES];
    for (ssize_t item = begin; item < end; item++) {
        ssize_t block = item / stretches, from = item % stretches * STRETCH_PLACES;
        ssize_t n = smaller(w->places - from, STRETCH_PLACES), rows = smaller(p->out_channels - block * LINES, LINES);
        for (ssize_t i = 0; i < rows; i++)
            for (ssize_t k = 0, sample = from / each, at = from % each; k < n; sample++, at = 0) {
                ssize_t length = smaller(each - at, n - k);
                ssize_t plane = (w->slab.first_sample + sample) * p->groups + w->group;
                plane = plane * p->out_channels + block * LINES + i;
                memcpy(lines[i] + k, w->job->output_grad + plane * p->out_size + before + at, (size_t)length * 2);
                k += length;
            }
        bf16_tiles.pack_right(n, (int)rows, lines, STRETCH_PLACES, 1,
                              w->right + (block * w->steps + from / STEP_HALVES) * STEP_BYTES);
    }
}

/* -- the products -- */
static inline __attribute__((always_inline)) void gather_tile(const int count, const int width, ssize_t rows,
                                                              const struct piece *piece, const uint16_t *source,
                                                              ssize_t channel, char *to) {
    for (ssize_t i = 0; i < rows; i++, source += channel, to += ROW_BYTES)
        UNROLL for (int j = 0; j < count; j++)
            memcpy(to + 2 * piece[j].column, source + piece[j].source, 2 * (size_t)width);
}

/* Up to 32 channels of the patches of one tap, from a step on; writes up to a row beyond the panel. */
static void gather_patches(ssize_t steps, const struct pieces *pieces, ssize_t rows, const uint16_t *source,
                           ssize_t channel, char *panel) {
    for (ssize_t s = 0; s < steps; s++, pieces++, panel += STEP_BYTES) {
        if (pieces->columns < STEP_HALVES) { /* what is beyond the last place must be no NaN */
            memset(panel, 0, STEP_BYTES);
            for (ssize_t i = 0; i < rows; i++)
                for (int j = 0; j < pieces->count; j++) {
                    const struct piece *piece = &pieces->piece[j];
                    ssize_t next = j + 1 < pieces->count ? piece[1].column : pieces->columns;
                    memcpy(panel + i * ROW_BYTES + 2 * piece->column, source + i * channel + piece->source,
                           2 * (size_t)(next - piece->column));
                }
            continue;
        }
#define GATHER(count, width) gather_tile(count, width, rows, pieces->piece, source, channel, panel)
        GATHER_BY_WIDTH(pieces, 32);
#undef GATHER
    }
}

/* Items: taps of blocks of input channels, by parts of the result channels. */
static void multiply_items(void *context, ssize_t begin, ssize_t end) {
    struct weight_slab *w = context;
    const struct convolution *p = w->job->problem;
    ssize_t stretch = STRETCH_PLACES / STEP_HALVES;
    char *left = allocate((size_t)stretch * STEP_BYTES + ROW_BYTES);
    if (!left) {
        w->out_of_memory = true;
        return;
    }
    memset(left, 0, (size_t)stretch * STEP_BYTES);
    bf16_tiles.begin();
    for (ssize_t item = begin; item < end; item++) {
        ssize_t part = item % w->parts, block = item / w->parts % w->job->in_blocks, tap = item / w->parts / w->job->in_blocks;
        ssize_t first = w->job->out_blocks * part / w->parts, last = w->job->out_blocks * (part + 1) / w->parts;
        ssize_t rows = smaller(p->in_channels - block * LINES, LINES);
        const uint16_t *source = w->copy + block * LINES * w->channel + offset_of_tap(p, &w->layout, tap);
        float *sums = w->sums + item / w->parts * w->job->out_blocks * SUMS;
        for (ssize_t from = 0; from < w->steps; from += stretch) {
            ssize_t steps = smaller(w->steps - from, stretch);
            gather_patches(steps, w->pieces + from, rows, source, w->channel, left);
            for (ssize_t out = first; out < last; out++)
                bf16_tiles.multiply(steps * STEP_HALVES, left, 0, w->right + (out * w->steps + from) * STEP_BYTES,
                                    (int)rows, (int)smaller(p->out_channels - out * LINES, LINES), !w->first || from,
                                    sums + out * SUMS, w->right + (out * w->steps + from) * STEP_BYTES);
        }
    }
    bf16_tiles.end();
    release(left);
}

/* -- results -- */
/* The sums of a group. */
struct sums {
    const struct weight_job *job;
    ssize_t group;
    const float *sums;
};

/* Blocks of weights: of input channels, by blocks of result channels. */
static void put_weights(void *context, ssize_t begin, ssize_t end) {
    enum { PART = 128, FLOATS = VECTOR_BYTES / sizeof(float) };
    const struct sums *of = context;
    const struct weight_job *job = of->job;
    const struct convolution *p = job->problem;
    float block[PART][LINES], lines[LINES][PART];
    uint16_t *grad = job->weight_grad + of->group * p->out_channels * p->in_channels * p->taps;
    for (ssize_t item = begin; item < end; item++) {
        ssize_t first = item / job->out_blocks * LINES, out = item % job->out_blocks * LINES;
        ssize_t n = smaller(p->in_channels - first, LINES) * p->taps, outs = smaller(p->out_channels - out, LINES);
        for (ssize_t from = 0; from < n; from += PART) {
            ssize_t length = smaller(n - from, PART);
            for (ssize_t i = 0, c = from / p->taps, tap = from % p->taps; i < length; i++) {
                const float *sums = of->sums + (tap * job->in_blocks * job->out_blocks + item) * SUMS + c * LINES;
                memcpy(block[i], sums, sizeof block[i]);
                for (ssize_t split = 1; split < job->splits; split++)
                    for (int o = 0; o < LINES; o++) block[i][o] += sums[split * job->size + o];
                if (++tap == p->taps) tap = 0, c++;
            }
            for (ssize_t i = 0; i < length; i += FLOATS)
                for (ssize_t o = 0; o < LINES; o += FLOATS)
                    transpose_square_f32(block[i] + o, LINES, lines[o] + i, PART);
            for (ssize_t o = 0; o < outs; o++)
                narrow_bfloat16(length, lines[o], grad + ((out + o) * p->in_channels + first) * p->taps + from);
        }
    }
}

static void put_group(const struct weight_job *job, ssize_t group, const float *sums) {
    struct sums of = {job, group, sums};
    parallel_for(job->in_blocks * job->out_blocks, grain_for(SUMS * job->problem->taps), put_weights, &of);
}

/* The sums of some splits of groups, each of which works alone where there are several. */
static void differentiate(void *context, ssize_t begin, ssize_t end) {
    struct weight_job *job = context;
    const struct convolution *p = job->problem;
    struct weight_slab w = {.job = job, .slab = slab_at(p, &job->slabs, 0), .parts = 1};
    ssize_t items = p->taps * job->in_blocks, most = w.slab.samples;
    for (int i = 0; i < p->axes; i++) most *= w.slab.last[i] - w.slab.first[i];
    w.steps = blocks_of(most, STEP_HALVES);
    w.channel = size_times(layout_of_copy(p, &w.slab).channel, w.slab.samples);
    w.copy = allocate_items(size_plus(size_times(w.channel, p->in_channels), STEP_HALVES), sizeof *w.copy);
    w.right = allocate_items(size_times(w.steps, job->out_blocks), STEP_BYTES);
    w.pieces = allocate_items(w.steps, sizeof *w.pieces);
    float *own = job->sums ? NULL : allocate_items(job->size, sizeof *own);
    if (!w.copy || !w.right || !w.pieces || (!job->sums && !own)) {
        job->out_of_memory = true;
        end = begin;
    }
    while (items * w.parts < 2 * thread_count() && w.parts < job->out_blocks) w.parts++;
    for (ssize_t item = begin; item < end; item++) {
        ssize_t split = item % job->splits;
        ssize_t from = job->slabs.count * split / job->splits, to = job->slabs.count * (split + 1) / job->splits;
        w.group = item / job->splits;
        w.sums = job->sums ? job->sums + split * job->size : own;
        for (ssize_t i = from; i < to; i++) {
            w.first = i == from;
            w.slab = slab_at(p, &job->slabs, i);
            w.layout = layout_of_copy(p, &w.slab);
            w.layout.sample = w.layout.channel;
            w.channel = w.layout.channel * w.slab.samples;
            w.places = w.slab.samples;
            for (int a = 0; a < p->axes; a++) w.places *= w.slab.last[a] - w.slab.first[a];
            w.steps = blocks_of(w.places, STEP_HALVES);
            struct walk places = places_of_pass(p, &w.slab, &w.layout, 0);
            begin_walk(&places);
            for (ssize_t s = 0; s < w.steps; s++) cut_into_pieces(&places, STEP_HALVES, &w.pieces[s]);
            parallel_for(p->in_channels, grain_for(w.channel / 8), copy_channels, &w);
            parallel_for(job->out_blocks * blocks_of(w.places, STRETCH_PLACES), 1, pack_gradient, &w);
            ssize_t work = w.places * LINES * p->out_channels / w.parts;
            parallel_for(items * w.parts, grain_for(work / 256), multiply_items, &w);
        }
        if (own) put_group(job, w.group, own);
    }
    if (w.out_of_memory) job->out_of_memory = true;
    release(own);
    release(w.pieces);
    release(w.right);
    release(w.copy);
}

bool weight_gradient_bf16(const struct convolution *p, const uint16_t *input, const uint16_t *output_grad,
                          uint16_t *weight_grad) {
    struct weight_job job = {.problem = p, .input = input, .output_grad = output_grad, .weight_grad = weight_grad};
    job.in_blocks = blocks_of(p->in_channels, LINES), job.out_blocks = blocks_of(p->out_channels, LINES);
    job.size = size_times(size_times(p->taps, job.in_blocks), size_times(job.out_blocks, SUMS));
    ssize_t channels = p->in_channels > p->out_channels ? p->in_channels : p->out_channels, all = p->samples;
    for (int i = 0; i < p->axes; i++) all *= p->axis[i].out;
    bool few = p->groups == 1 && job.size <= SPLIT_BYTES / (ssize_t)sizeof(float);
    ssize_t places = smaller(SLAB_BYTES / 2 / channels, few ? blocks_of(all, SPLITS) : all);
    job.slabs = cut_into_slabs(p, places < FEWEST_PLACES ? FEWEST_PLACES : places);
    job.splits = few ? smaller(SPLITS, job.slabs.count) : 1;
    if (job.splits > 1 && !(job.sums = allocate_items(size_times(job.splits, job.size), sizeof *job.sums))) return false;
    parallel_for(p->groups * job.splits, 1, differentiate, &job);
    if (job.sums && !job.out_of_memory) put_group(&job, 0, job.sums);
    release(job.sums);
    return !job.out_of_memory;
}
