/* The products of recurrences of half types. Panels of the weight are packed once in a call, then meet the rows of each
 * step, which are often few: pairs have an engine of their own for these. */
#include "recurrent/recurrent_halves.h"

#include "core/memory.h"
#include "core/sizes.h"
#include "core/threads.h"
#include "gemm/gemm_transpose.h"
#include "kernels.h"

#include <stdatomic.h>
#include <string.h>

#if defined(__AVX512F__)
#include <immintrin.h>

/* -- pairs for few rows: of the left factor as they are, two panels of the large products side by side -- */
enum { LANES = 16, PAIR_ROWS = 8, PAIR_COLUMNS = 4 * LANES, HALF_PANEL = 2 * LANES };

/* `rows` rows by `vectors` vectors from the vector `first` on: constants, so that the sums are kept in registers. As
 * much is asked for of the panel at `ahead` as is read of this one. */
static inline __attribute__((always_inline, target("avx512f,avx512bf16"))) void multiply_few(
    const int rows, const int vectors, const int first, ssize_t pairs, const char *a, ssize_t line, const uint32_t *b,
    float *sums, const uint32_t *ahead) {
    const uint32_t *panel[2] = {b, b + pairs * HALF_PANEL};
    __m512 total[PAIR_ROWS][4];
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int j = 0; j < vectors; j++) total[i][j] = _mm512_setzero_ps();
    for (ssize_t l = 0; l < pairs; l++) {
        __m512bh right[4];
        UNROLL for (int j = 0; j < vectors; j++) {
            int vector = first + j;
            right[j] = (__m512bh)_mm512_loadu_si512(panel[vector / 2] + l * HALF_PANEL + vector % 2 * LANES);
            __builtin_prefetch(ahead + (l * 4 + vector) * LANES, 0, 2);
        }
        UNROLL for (int i = 0; i < rows; i++) {
            int pair;
            memcpy(&pair, a + i * line + l * 4, sizeof pair);
            UNROLL for (int j = 0; j < vectors; j++)
                total[i][j] = _mm512_dpbf16_ps(total[i][j], (__m512bh)_mm512_set1_epi32(pair), right[j]);
        }
    }
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int j = 0; j < vectors; j++)
            _mm512_storeu_ps(sums + i * PAIR_COLUMNS + (first + j) * LANES, total[i][j]);
}

/* Up to four rows meet four vectors at once, more of them two and two: more need more registers than there are. */
static __attribute__((noinline, target("avx512f,avx512bf16"))) void multiply_pairs(
    ssize_t k, const void *left, ssize_t line, const void *right, int rows, int columns, bool more, void *sums,
    const void *next) {
    (void)more; /* never: k is not cut */
    ssize_t pairs = (k + 1) / 2;
#define MULTIPLY(rows, vectors, first) multiply_few(rows, vectors, first, pairs, left, line, right, sums, next)
#define FOUR(rows)                                                                                                     \
    case rows: MULTIPLY(rows, 4, 0); break;
#define TWO(rows)                                                                                                      \
    case rows:                                                                                                         \
        MULTIPLY(rows, 2, 0);                                                                                          \
        if (columns > HALF_PANEL) MULTIPLY(rows, 2, 2);                                                                \
        break;
    switch (rows) {
        FOUR(1)
        FOUR(2)
        FOUR(3)
        FOUR(4)
        TWO(5)
        TWO(6)
        TWO(7)
        TWO(8)
    }
#undef TWO
#undef FOUR
#undef MULTIPLY
}

static void pack_pairs(ssize_t k, int lines, const void *source, ssize_t line, ssize_t along, void *packed) {
    bf16_pairs.pack_right(k, lines < HALF_PANEL ? lines : HALF_PANEL, source, line, along, packed);
    if (lines > HALF_PANEL)
        bf16_pairs.pack_right(k, lines - HALF_PANEL, (const uint16_t *)source + HALF_PANEL * line, line, along,
                              (uint32_t *)packed + (k + 1) / 2 * HALF_PANEL);
}

static const struct engine few_pairs = {
    .rows = PAIR_ROWS, .least_rows = 1, .columns = PAIR_COLUMNS, .unit = 2, .size = 2, .right_bytes = PAIR_COLUMNS * sizeof(uint32_t),
    .direct = true, .pack_right = pack_pairs, .multiply = multiply_pairs,
};

/* What multiplies so many rows: of a panel that does not stay in the first cache, more than a tile of few are multiplied by
 * the engine of large products, whose tiles are higher. Its panels are halves of these. */
static const struct engine *engine_for(const struct half_weight *of, ssize_t m) {
    enum { NEAR = 256 };
    return of->with == &few_pairs && m > PAIR_ROWS && of->k > NEAR ? &bf16_pairs : of->with;
}
#else
static const struct engine *engine_for(const struct half_weight *of, ssize_t m) { return (void)m, of->with; }
#endif

const struct engine *step_engine(enum dtype dtype, int products) {
    bool brain = dtype == BFLOAT16;
    if (products == BY_TILES) return brain ? &bf16_tiles : &f16_tiles;
#if defined(__AVX512F__)
    if (products == BY_PAIRS && brain) return &few_pairs;
#endif
    return brain ? &bf16_floats : &f16_floats;
}

/* -- the weight -- */
static inline ssize_t parts_of(ssize_t n, ssize_t part) { return (n + part - 1) / part; }

static ssize_t panel_bytes(const struct half_weight *of) {
    return size_times(parts_of(of->k, of->with->unit), of->with->right_bytes);
}

/* The columns, or the rows, that the panel or tile `i` has, of n in all. */
static int there(ssize_t n, ssize_t i, int most) { return n - i * most < most ? (int)(n - i * most) : most; }

static void pack_panels(void *context, ssize_t begin, ssize_t end) {
    const struct half_weight *of = context;
    const struct engine *e = of->with;
    for (ssize_t i = begin; i < end; i++)
        e->pack_right(of->k, there(of->columns, i, e->columns), of->weight + i * e->columns * of->column, of->column,
                      of->row, of->packed + i * panel_bytes(of));
}

bool pack_half_weight(struct half_weight *of) {
    ssize_t panels = parts_of(of->columns, of->with->columns);
    of->packed = allocate_items(panels, (size_t)panel_bytes(of));
    if (!of->packed) return false;
    parallel_for(panels, grain_for(of->k * of->with->columns / 8), pack_panels, of);
    return true;
}

/* -- the products -- */
struct half_step {
    const struct half_weight *weight;
    const struct engine *with;
    ssize_t m, tiles, line, tile_bytes; /* bytes of a row of `left`, 0 if it is packed, and of a tile of rows if it is */
    const char *left;
    float *c;
    ssize_t c_row;
    atomic_bool any_nan;
};

/* The first row of a tile: all have about as many. */
static ssize_t tile_begin(const struct half_step *job, ssize_t tile) {
    ssize_t least = job->with->least_rows, row = (tile * job->m / job->tiles + least - 1) / least * least;
    return row < job->m ? row : job->m;
}

/* Panels begin to end. */
static void times_panels(void *context, ssize_t begin, ssize_t end) {
    struct half_step *job = context;
    const struct engine *e = job->with;
    ssize_t k = job->weight->k, bytes = parts_of(k, e->unit) * e->right_bytes;
    float sums[32 * 32] __attribute__((aligned(64)));
    bool any_nan = false;
    if (e->begin) e->begin();
    for (ssize_t i = begin; i < end; i++) {
        const char *panel = job->weight->packed + i * bytes, *next = i + 1 < end ? panel + bytes : panel;
        int columns = there(job->weight->columns, i, e->columns);
        for (ssize_t t = 0; t < job->tiles; t++) {
            ssize_t first = tile_begin(job, t);
            int rows = (int)(tile_begin(job, t + 1) - first);
            e->multiply(k, job->left + (job->line ? first * job->line : t * job->tile_bytes), job->line, panel, rows,
                        columns, false, sums, t ? panel : next);
            for (int row = 0; row < rows; row++) {
                const float *sum = sums + row * e->columns;
                float *c = job->c + (first + row) * job->c_row + i * e->columns;
                memcpy(c, sum, (size_t)columns * sizeof *c);
                for (int j = 0; j < columns && e->otherwise; j++) any_nan |= sum[j] != sum[j];
            }
        }
    }
    if (e->end) e->end();
    if (any_nan) job->any_nan = true;
}

/* Tiles of float16 make NaN of infinite numbers: the product of floats tells which they are. */
static bool times_as_floats(const struct half_weight *of, ssize_t m, const uint16_t *a, float *c, ssize_t c_row) {
    struct half_weight floats = *of;
    floats.with = &f16_floats;
    bool done = pack_half_weight(&floats) && times_half_weight(&floats, m, a, c, c_row);
    release(floats.packed);
    return done;
}

bool times_half_weight(const struct half_weight *of, ssize_t m, const uint16_t *a, float *c, ssize_t c_row) {
    enum { SPILL = 64 }; /* bytes that packing may overwrite */
    const struct engine *e = engine_for(of, m);
    ssize_t k = of->k, units = parts_of(k, e->unit), line = units * e->unit * e->size;
    struct half_step job = {.weight = of, .with = e, .m = m, .tiles = parts_of(m, e->rows), .line = e->direct ? line : 0,
                            .tile_bytes = units * e->left_bytes, .c = c, .c_row = c_row};
    ssize_t bytes = e->direct ? e->rows * line : job.tile_bytes;
    char *left = allocate_items(size_plus(size_times(job.tiles, bytes), SPILL), 1);
    if (!left) return false;
    for (ssize_t t = 0; t < job.tiles && !e->direct; t++) {
        ssize_t first = tile_begin(&job, t);
        e->pack_left(k, (int)(tile_begin(&job, t + 1) - first), a + first * k, k, 1, left + t * job.tile_bytes);
    }
    for (ssize_t i = 0; i < m && e->direct; i++) {
        memcpy(left + i * line, a + i * k, (size_t)(k * e->size));
        memset(left + i * line + k * e->size, 0, (size_t)(line - k * e->size));
    }
    job.left = left;
    ssize_t panel_cost = k * e->columns / 16 * (m + 4);
    parallel_for(parts_of(of->columns, e->columns), grain_for(panel_cost), times_panels, &job);
    release(left);
    return !job.any_nan || times_as_floats(of, m, a, c, c_row);
}
