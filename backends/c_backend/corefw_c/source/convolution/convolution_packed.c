/* Convolutions of bfloat16 by an engine of products of pairs (gemm_packed.h): products of weights and patches.
 *
 * A word is two channels of one place. A slab's input is copied, padded, as words, so that a row of a panel, one tap of
 * two channels at 32 places, is gathered from pieces that are contiguous. */
#include "convolution/convolution_packed.h"

#include "core/halves.h"
#include "core/memory.h"
#include "core/sizes.h"
#include "core/threads.h"
#include "core/tiles.h"
#include "gemm/gemm_tile.h"

#include <limits.h>
#include <stdatomic.h>
#include <string.h>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

enum {
    PLACES = 512,         /* of a slab, about, */
    FEWEST_PLACES = 128,  /* since each one meets all weights, */
    HALF_PANEL = 16,      /* of a panel's places, which cost as much as any of them, */
    SLAB_BYTES = 5 << 18, /* of a slab's copy and panels at most where several samples make the panels full */
    PANELS = 16,          /* that are gathered before they are multiplied, */
    DEPTH_WORDS = 512,    /* so many rows of each at a time, at most */
    STRETCH_WORDS = 128,  /* whose panels fit the first-level cache */
    PAIRS = 16,           /* of channels whose weights are packed together */
    TASKS_PER_THREAD = 4, /* at least, if the places allow, */
    PARTS_PER_THREAD = 2, /* or so many that share places, which each of them gathers */
};

struct packed_job {
    const struct engine *with;
    const struct convolution *problem;
    const struct tap_order *order;
    const uint16_t *input, *weight;
    const float *bias;
    uint16_t *output;
    char *packed; /* weights [pass][group][block of rows] */
    struct slabs slabs;
    ssize_t pairs, row_parts; /* pairs of channels of a group */
    atomic_bool out_of_memory;
};

/* -- weights -- */
static ssize_t taps_of(const struct packed_job *job, ssize_t pass) {
    return job->order->first[pass + 1] - job->order->first[pass];
}

/* The words of a row of weights, with zeros up to a whole unit. */
static ssize_t words_of(const struct packed_job *job, ssize_t pass) {
    ssize_t unit = job->with->unit / 2;
    return blocks_of(job->pairs * taps_of(job, pass), unit) * unit;
}

/* The bytes of the panel of a block of rows. */
static ssize_t panel_bytes(const struct packed_job *job, ssize_t pass) {
    return room_of(words_of(job, pass) / (job->with->unit / 2) * job->with->left_bytes);
}

/* Where the panels of a group's weights begin for a pass. */
static char *weights_of(const struct packed_job *job, ssize_t pass, ssize_t group) {
    ssize_t bytes = 0, blocks = blocks_of(job->problem->out_channels, job->with->rows);
    for (ssize_t i = 0; i < pass; i++) bytes += panel_bytes(job, i) * job->problem->groups;
    return job->packed + (bytes + panel_bytes(job, pass) * group) * blocks;
}

/* Words of n taps of two channels. */
struct pairing {
    ssize_t n, all; /* all: taps of a channel */
    const ssize_t *tap;
#if defined(__AVX512F__)
    __m512i index; /* of the elements, if there are few enough: 0 to 31 of the first channel, then of the second */
#endif
};

static struct pairing pairing_of(const struct packed_job *job, ssize_t pass) {
    struct pairing pairing = {
        .n = taps_of(job, pass), .all = job->problem->taps, .tap = job->order->tap + job->order->first[pass]};
#if defined(__AVX512F__)
    uint16_t index[32] = {0};
    for (ssize_t j = 0; j < pairing.n && j < 16; j++)
        index[2 * j] = (uint16_t)pairing.tap[j], index[2 * j + 1] = (uint16_t)(32 + pairing.tap[j]);
    pairing.index = _mm512_loadu_si512(index);
#endif
    return pairing;
}

/* to[j] = the elements tap[j] of a and of b, which may be NULL. */
static inline void pair_taps(const struct pairing *pairing, const uint16_t *a, const uint16_t *b, uint32_t *to) {
    const ssize_t *tap = pairing->tap;
#if defined(__AVX512F__)
    if (pairing->all <= 32 && pairing->n <= 16) {
        __mmask32 all = (uint32_t)(((uint64_t)1 << pairing->all) - 1);
        __m512i first = _mm512_maskz_loadu_epi16(all, a), second = b ? _mm512_maskz_loadu_epi16(all, b) : (__m512i){0};
        _mm512_mask_storeu_epi32(to, (__mmask16)((1u << pairing->n) - 1),
                                 _mm512_permutex2var_epi16(first, pairing->index, second));
        return;
    }
#endif
    for (ssize_t j = 0; j < pairing->n; j++) to[j] = a[tap[j]] | (b ? (uint32_t)b[tap[j]] << 16 : 0);
}

/* Pack a block of rows of weights for every pass: blocks begin to end, counted over all groups. */
static void pack_weights(void *context, ssize_t begin, ssize_t end) {
    struct packed_job *job = context;
    const struct convolution *p = job->problem;
    const struct engine *e = job->with;
    ssize_t blocks = blocks_of(p->out_channels, e->rows), unit = e->unit / 2, most = PAIRS * job->order->most + unit;
    ssize_t row = p->transposed ? p->taps : p->in_channels * p->taps;
    ssize_t channel = p->transposed ? p->out_channels * p->taps : p->taps;
    uint32_t *words = allocate_items(size_times(most, e->rows), sizeof *words); /* [row][word] */
    if (!words) {
        job->out_of_memory = true;
        return;
    }
    for (ssize_t item = begin; item < end; item++) {
        ssize_t group = item / blocks, first = block_start(e, p->out_channels, item % blocks);
        ssize_t rows = block_start(e, p->out_channels, item % blocks + 1) - first;
        const uint16_t *weight = job->weight + group * p->in_channels * p->out_channels * p->taps + first * row;
        for (ssize_t pass = 0; pass < p->passes; pass++) {
            struct pairing pairing = pairing_of(job, pass);
            char *panel = weights_of(job, pass, group) + item % blocks * panel_bytes(job, pass);
            if (p->taps == 1) { /* a matrix as it lies */
                e->pack_left(p->in_channels, (int)rows, weight, row, channel, panel);
                continue;
            }
            for (ssize_t q = 0; q < job->pairs && pairing.n; q += PAIRS) {
                ssize_t pairs = smaller(job->pairs - q, PAIRS), used = pairs * pairing.n, n = blocks_of(used, unit) * unit;
                for (ssize_t i = 0; i < rows; i++) memset(words + i * n + used, 0, (size_t)(n - used) * sizeof *words);
                /* in the order of memory: rows of channels, or channels of rows */
                ssize_t outer = p->transposed ? pairs : rows, inner = p->transposed ? rows : pairs;
                for (ssize_t far = 0; far < outer; far++)
                    for (ssize_t near = 0; near < inner; near++) {
                        ssize_t i = p->transposed ? near : far, c = 2 * (q + (p->transposed ? far : near));
                        const uint16_t *a = weight + i * row + c * channel;
                        __builtin_prefetch(a + 2 * PAIRS * channel);
                        if (p->transposed) __builtin_prefetch(a + (2 * PAIRS + 1) * channel);
                        pair_taps(&pairing, a, c + 1 < p->in_channels ? a + channel : NULL,
                                  words + i * n + c / 2 % PAIRS * pairing.n);
                    }
                e->pack_left(2 * n, (int)rows, words, 2 * n, 1, panel + q * pairing.n / unit * e->left_bytes);
            }
        }
    }
    release(words);
}

/* -- the copy of the input -- */
/* to[j] = a[j * step] and b[j * step] as a word; b may be NULL. */
static inline void pair_rows(ssize_t n, ssize_t step, const uint16_t *a, const uint16_t *b, uint32_t *restrict to) {
#if defined(__AVX512F__)
    if (step == 1) {
        for (ssize_t j = 0; j < n; j += 16) {
            __mmask16 there = n - j < 16 ? (__mmask16)((1u << (n - j)) - 1) : 0xffff;
            __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(there, a + j)),
                    high = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(b ? there : 0, b ? b + j : a));
            _mm512_mask_storeu_epi32(to + j, there, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
        }
        return;
    }
#endif
    if (b)
        for (ssize_t j = 0; j < n; j++) to[j] = a[j * step] | (uint32_t)b[j * step] << 16;
    else
        for (ssize_t j = 0; j < n; j++) to[j] = a[j * step];
}

/* The layout of a copy that holds words: with pairs of channels in the place of channels. */
static struct layout layout_of_words(const struct packed_job *job, const struct slab *slab) {
    struct layout layout = layout_of_copy(job->problem, slab);
    layout.sample = size_times(layout.channel, job->pairs);
    return layout;
}

/* Copy a slab's input of one group as words. */
static void copy_words(const struct packed_job *job, const struct slab *slab, ssize_t group, const struct layout *layout,
                       uint32_t *copy) {
    const struct convolution *p = job->problem;
    ssize_t channels = p->groups * p->in_channels;
    const uint16_t *input = job->input + (slab->first_sample * channels + group * p->in_channels) * p->in_size;
    struct slab places = *slab;
    places.first_sample = 0;
    if (!is_unpadded(p)) memset(copy, 0, (size_t)(layout->sample * slab->samples) * sizeof *copy);
    for (ssize_t plane = 0; plane < p->planes; plane++) {
        struct walk rows;
        ssize_t step = begin_plane(p, &places, layout, plane, &rows);
        struct run run[RUNS];
        int runs;
        while (take_runs(&rows, INT_MAX, RUNS, run, &runs))
            for (ssize_t s = 0; s < slab->samples; s++)
                for (ssize_t q = 0; q < job->pairs; q++) {
                    const uint16_t *a = input + (s * channels + 2 * q) * p->in_size;
                    const uint16_t *b = 2 * q + 1 < p->in_channels ? a + p->in_size : NULL;
                    uint32_t *to = copy + s * layout->sample + q * layout->channel;
                    for (int r = 0; r < runs; r++) {
                        ask_for_halves(2, run[r].length * step, a + 2 * p->in_size + run[r].source, p->in_size);
                        pair_rows(run[r].length, step, a + run[r].source, b ? b + run[r].source : NULL,
                                  to + run[r].target);
                    }
                }
    }
}

/* -- panels -- */
int cut_into_pieces(struct walk *places, int most, ssize_t widest, struct pieces *pieces) {
    struct run run[PIECES];
    int runs, columns = take_runs(places, most, most, run, &runs);
    ssize_t longest = 0;
    for (int i = 0; i < runs; i++) longest = run[i].length > longest ? run[i].length : longest;
    pieces->width = widest / 4;
    while (pieces->width < longest && pieces->width < widest) pieces->width *= 2;
    pieces->count = 0;
    pieces->columns = columns;
    for (int i = 0; i < runs; i++)
        for (ssize_t j = 0; j < run[i].length; j += pieces->width)
            pieces->piece[pieces->count++] = (struct piece){run[i].source + j, run[i].column + j};
    return columns;
}

/* The places of a panel, of one or two parts; where their results lie. */
struct places {
    struct pieces part[2];
    struct run run[LINES]; /* column and target */
    int columns, runs;
};

static inline __attribute__((always_inline)) void gather_rows(const int count, const int width, ssize_t rows,
                                                              ssize_t row_bytes, const ssize_t *offsets,
                                                              const struct piece *piece, const uint32_t *source,
                                                              char *to) {
    for (ssize_t l = 0; l < rows; l++, to += row_bytes)
        UNROLL for (int i = 0; i < count; i++)
            memcpy(to + 4 * piece[i].column, source + offsets[l] + piece[i].source, 4 * (size_t)width);
}

/* Words `first` to `last` of a panel, and zeros up to a whole unit; writes up to a row beyond the panel. */
static void gather_panel(const struct engine *e, ssize_t first, ssize_t last, const ssize_t *offsets,
                         const struct places *places, const uint32_t *source, char *panel) {
    ssize_t unit = e->unit / 2, row = 4 * e->width, together = e->width == e->columns ? last - first : unit;
    for (ssize_t l = first; l < last; l += together, panel += together / unit * e->right_bytes) {
        ssize_t rows = smaller(last - l, together);
        for (ssize_t h = 0; h * e->width < places->columns; h++) {
            const struct pieces *part = &places->part[h];
            char *to = panel + h * unit * row;
#define GATHER(count, width) gather_rows(count, width, rows, row, offsets + l, part->piece, source, to)
            GATHER_BY_WIDTH(part, ROW_WORDS);
#undef GATHER
            if (rows % unit) memset(to + rows * row, 0, (size_t)((unit - rows % unit) * row));
        }
    }
}

/* The next panel's places, of which `sources` and `targets` are the same walk; false at the end. */
static bool take_places(const struct engine *e, struct walk *sources, struct walk *targets, struct places *places) {
    places->columns = 0;
    for (int h = 0; places->columns == h * e->width && h * e->width < e->columns; h++)
        places->columns += cut_into_pieces(sources, e->width, ROW_WORDS, &places->part[h]);
    take_runs(targets, e->columns, e->columns, places->run, &places->runs);
    return places->columns;
}

/* -- results -- */
#if defined(__AVX512F__)
static __attribute__((target("avx512bf16"))) void put_rows(int rows, const float *sums, const float *bias, int runs,
                                                           const struct run *run, uint16_t *output, ssize_t row) {
    for (int i = 0; i < rows; i++, sums += LINES, output += row) {
        __m512 x = _mm512_loadu_ps(sums) + bias[i], y = _mm512_loadu_ps(sums + 16) + bias[i];
        __m512i halves = (__m512i)_mm512_cvtne2ps_pbh(y, x);
        for (int r = 0; r < runs; r++) {
            __mmask32 columns = (uint32_t)((((uint64_t)1 << run[r].length) - 1) << run[r].column);
            _mm512_mask_storeu_epi16(output + run[r].target - run[r].column, columns, halves);
        }
    }
}
#endif

/* Write a block of sums + bias, whose columns lie `distance` apart in a row of the result. */
static void put_block(int rows, const float *sums, const float *bias, const struct places *places, ssize_t distance,
                      uint16_t *output, ssize_t row) {
#if defined(__AVX512F__)
    if (!TILES_ARE_EMULATED && distance == 1) {
        put_rows(rows, sums, bias, places->runs, places->run, output, row);
        return;
    }
#endif
    for (int i = 0; i < rows; i++, sums += LINES, output += row) {
        float total[LINES];
        uint16_t halves[LINES];
        for (int j = 0; j < places->columns; j++) total[j] = sums[j] + bias[i];
        narrow_bfloat16(places->columns, total, halves);
        for (int r = 0; r < places->runs; r++)
            for (ssize_t j = 0; j < places->run[r].length; j++)
                output[places->run[r].target + j * distance] = halves[places->run[r].column + j];
    }
}

/* Planes of the result, one for each sample and channel: what the places have to which no input contributes. */
static void fill_planes(void *context, ssize_t begin, ssize_t end) {
    const struct packed_job *job = context;
    const struct convolution *p = job->problem;
    for (ssize_t plane = begin; plane < end; plane++) {
        uint16_t start = job->bias ? bfloat16_bits(job->bias[plane % (p->groups * p->out_channels)]) : 0;
        for (ssize_t i = 0; i < p->out_size; i++) job->output[plane * p->out_size + i] = start;
    }
}

/* -- the products -- */
/* Scratch memory of a task. */
struct scratch {
    ssize_t *offsets;
    uint32_t *copy;
    char *panels;  /* of DEPTH_WORDS rows at most, `panel` bytes apart */
    ssize_t panel;
    float *sums;   /* [block of rows][PANELS], of one block where the weights have no more words than fit */
    struct places *places;
};

/* One pass over a slab, for some blocks of rows of a group. */
static void multiply_slab(const struct packed_job *job, ssize_t group, ssize_t pass, ssize_t first_block,
                          ssize_t last_block, struct walk *places, const struct scratch *scratch) {
    const struct engine *e = job->with;
    const struct convolution *p = job->problem;
    ssize_t used = job->pairs * taps_of(job, pass), words = words_of(job, pass), unit = e->unit / 2, panels;
    ssize_t distance = places->target[places->axes - 1], tile = (ssize_t)e->rows * e->columns;
    ssize_t blocks = words > DEPTH_WORDS ? blocks_of(words, DEPTH_WORDS) : 1, kept = blocks > 1 ? PANELS * tile : 0;
    ssize_t step = words ? blocks_of(words, blocks * unit) * unit : unit; /* of words at a time, about equal */
    const char *weights = weights_of(job, pass, group);
    uint16_t *output = job->output + group * p->out_channels * p->out_size;
    struct walk targets = *places;
    begin_walk(places);
    begin_walk(&targets);
    do {
        for (panels = 0; panels < PANELS && take_places(e, places, &targets, &scratch->places[panels]);) panels++;
        for (ssize_t from = 0; from == 0 || from < words; from += step) {
            ssize_t depth = smaller(words - from, step);
            for (ssize_t i = 0; i < panels; i++)
                gather_panel(e, from, smaller(used, from + depth), scratch->offsets, &scratch->places[i], scratch->copy,
                             scratch->panels + i * scratch->panel);
            for (ssize_t block = first_block; block < last_block; block++) {
                ssize_t row = block_start(e, p->out_channels, block);
                int rows = (int)(block_start(e, p->out_channels, block + 1) - row);
                const char *left = weights + block * panel_bytes(job, pass) + from / unit * e->left_bytes;
                float *sums = scratch->sums + (block - first_block) * kept;
                for (ssize_t i = 0; i < panels && distance == 1 && from + depth >= words; i++) /* where results come */
                    for (int j = 0; j < rows; j++)
                        __builtin_prefetch(output + (row + j) * p->out_size + scratch->places[i].run[0].target, 1);
                for (ssize_t near = 0; near == 0 || near < depth; near += STRETCH_WORDS)
                    for (ssize_t i = 0; i < panels; i++) {
                        const char *right = scratch->panels + i * scratch->panel + near / unit * e->right_bytes;
                        e->multiply(2 * smaller(depth - near, STRETCH_WORDS), left + near / unit * e->left_bytes, 0,
                                    right, rows, scratch->places[i].columns, from + near > 0, sums + i * tile, right);
                    }
                if (from + depth < words) continue;
                float bias[LINES];
                for (int i = 0; i < rows; i++) /* -0 changes no sum */
                    bias[i] = job->bias ? job->bias[group * p->out_channels + row + i] : -0.0f;
                for (ssize_t i = 0; i < panels; i++)
                    put_block(rows, sums + i * tile, bias, &scratch->places[i], distance,
                              output + row * p->out_size, p->out_size);
            }
        }
    } while (panels == PANELS);
}

/* Tasks: a slab of a group, and a part of its rows. */
static void convolve_slabs(void *context, ssize_t begin, ssize_t end) {
    struct packed_job *job = context;
    const struct convolution *p = job->problem;
    struct slab slab = slab_at(p, &job->slabs, 0);
    const struct engine *e = job->with;
    ssize_t blocks = blocks_of(p->out_channels, e->rows);
    ssize_t size = size_times(layout_of_words(job, &slab).sample, slab.samples), most = job->pairs * job->order->most;
    ssize_t panel = room_of(blocks_of(2 * smaller(most, DEPTH_WORDS), e->unit) * e->right_bytes);
    struct scratch scratch = {
        allocate_items(most, sizeof *scratch.offsets),
        allocate_items(size_plus(size, ROW_WORDS), sizeof *scratch.copy),
        allocate_items(PANELS, (size_t)panel),
        panel,
        allocate_items(most > DEPTH_WORDS ? blocks_of(blocks, job->row_parts) : 1,
                       PANELS * (size_t)(e->rows * e->columns) * sizeof *scratch.sums),
        allocate(PANELS * sizeof *scratch.places),
    };
    if (!scratch.offsets || !scratch.copy || !scratch.panels || !scratch.sums || !scratch.places) {
        job->out_of_memory = true;
        end = begin;
    }
    if (e->begin) e->begin();
    for (ssize_t item = begin; item < end; item++) {
        ssize_t part = item % job->row_parts, index = item / job->row_parts, group = index / job->slabs.count;
        ssize_t first = blocks * part / job->row_parts, last = blocks * (part + 1) / job->row_parts;
        slab = slab_at(p, &job->slabs, index % job->slabs.count);
        struct layout layout = layout_of_words(job, &slab);
        copy_words(job, &slab, group, &layout, scratch.copy);
        for (ssize_t pass = 0; pass < p->passes; pass++) {
            ssize_t taps = taps_of(job, pass);
            struct walk places = places_of_pass(p, &slab, &layout, pass);
            for (ssize_t l = 0; l < taps * job->pairs; l++)
                scratch.offsets[l] = l < taps ? offset_of_tap(p, &layout, job->order->tap[job->order->first[pass] + l])
                                              : scratch.offsets[l - taps] + layout.channel;
            multiply_slab(job, group, pass, first, last, &places, &scratch);
        }
    }
    if (e->end) e->end();
    release(scratch.places);
    release(scratch.sums);
    release(scratch.panels);
    release(scratch.copy);
    release(scratch.offsets);
}

/* Slabs of about so many places. Samples of few places are taken together while that leaves fewer halves of panels, all threads
 * have slabs, and the second-level cache holds one. Zen 5, 8 images of 7 x 7: 1.04 to 1.06 times as fast, of 14 x 14 1.03. */
static struct slabs cut_for_panels(const struct packed_job *job, ssize_t places) {
    const struct convolution *p = job->problem;
    struct slabs slabs = cut_into_slabs(p, places);
    ssize_t each = 1, words = size_times(job->pairs, job->order->most);
    for (int i = 0; i < p->axes; i++) each *= p->axis[i].last - p->axis[i].first;
    while (slabs.cuts == 1 && slabs.count >= 2 * thread_count()) {
        struct slabs twice = slabs;
        twice.batch *= 2, twice.count = blocks_of(p->samples, twice.batch);
        ssize_t halves = blocks_of(slabs.batch * each, HALF_PANEL), fewer = blocks_of(twice.batch * each, HALF_PANEL);
        struct slab slab = slab_at(p, &twice, 0);
        ssize_t copied = size_times(layout_of_words(job, &slab).sample, twice.batch);
        ssize_t gathered = size_times(smaller(words, DEPTH_WORDS), smaller(fewer, 2 * PANELS) * HALF_PANEL);
        if (size_plus(copied, gathered) > SLAB_BYTES / (ssize_t)sizeof(uint32_t)) break;
        if (32 * fewer * twice.count > 31 * halves * slabs.count) break;
        slabs = twice;
    }
    return slabs;
}

bool convolve_packed(const struct engine *e, const struct convolution *p, const struct tap_order *order,
                     const uint16_t *input, const uint16_t *weight, const float *bias, uint16_t *output) {
    struct packed_job job = {
        e, p, order, input, weight, bias, output, .pairs = blocks_of(p->in_channels, 2), .row_parts = 1};
    ssize_t blocks = blocks_of(p->out_channels, e->rows), bytes = 0;
    for (ssize_t pass = 0; pass < p->passes; pass++) bytes = size_plus(bytes, panel_bytes(&job, pass));
    job.packed = allocate_items(size_times(size_times(p->groups, blocks), bytes), 1);
    if (!job.packed) return false;
    if (leaves_gaps(p))
        parallel_for(p->samples * p->groups * p->out_channels, grain_for(p->out_size), fill_planes, &job);
    parallel_for(p->groups * blocks, grain_for(p->in_channels * p->taps * e->rows), pack_weights, &job);
    ssize_t places = p->samples, wanted = thread_count() == 1 ? 1 : TASKS_PER_THREAD * thread_count();
    for (int i = 0; i < p->axes; i++) places *= p->axis[i].last - p->axis[i].first;
    job.slabs = cut_for_panels(&job, places / wanted < FEWEST_PLACES ? FEWEST_PLACES : smaller(places / wanted, PLACES));
    ssize_t tasks = p->groups * job.slabs.count;
    if (tasks < wanted) job.row_parts = smaller(blocks_of(wanted / TASKS_PER_THREAD * PARTS_PER_THREAD, tasks), blocks);
    tasks *= job.row_parts;
    ssize_t work = p->samples * p->out_size * p->out_channels * p->in_channels * p->taps / p->passes + 1;
    parallel_for(tasks, grain_for(work * p->groups / tasks / 256), convolve_slabs, &job);
    release(job.packed);
    return !job.out_of_memory;
}
