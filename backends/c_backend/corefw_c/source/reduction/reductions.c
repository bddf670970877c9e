/* The reducers of all reductions and element types, and the table that finds them. */
#include "core/lanes.h"
#include "reduction/reduction.h"

#include <float.h>

/* The columns as which a row is seen, and the least size of rows for which that pays. */
enum { LANES = 64, LONG = 128 };

#define MEMBER_(name, part) name##_##part
#define MEMBER(name, part) MEMBER_(name, part)

/* For what is called from several places: there are many reducers, so that copies would make up most of the module. */
#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

static const float greatest_f32 = FLT_MAX;
static const double greatest_f64 = DBL_MAX;

static inline float modulus_f32(float x) { return __builtin_fabsf(x); }
static inline double modulus_f64(double x) { return __builtin_fabs(x); }
static inline float power_f32(float x, float p) { return powf(x, p); }
static inline double power_f64(double x, double p) { return pow(x, p); }
static NOINLINE double logarithm(double x) { return log(x); }
static NOINLINE double root(double x, double p) { return pow(x, 1 / p); }
#define TEMPLATE "elementwise/choice.inc"
#include "core/each_real.h"

#define TEMPLATE "reduction/reduce_rows.inc"
#include "core/each_real.h"

#define TEMPLATE "reduction/reduce_reals.inc"
#include "core/each_real.h"

#define INPUT uint8_t
#define SUFFIX u8
#define LANE int32_t
#define LOWEST 0
#define HIGHEST UINT8_MAX
#include "reduction/reduce_integers.inc"

#define INPUT int8_t
#define SUFFIX i8
#define LANE int32_t
#define LOWEST INT8_MIN
#define HIGHEST INT8_MAX
#include "reduction/reduce_integers.inc"

#define INPUT int16_t
#define SUFFIX i16
#define LANE int32_t
#define LOWEST INT16_MIN
#define HIGHEST INT16_MAX
#include "reduction/reduce_integers.inc"

#define INPUT int32_t
#define SUFFIX i32
#define LANE int64_t
#define LOWEST INT32_MIN
#define HIGHEST INT32_MAX
#include "reduction/reduce_integers.inc"

#define INPUT int64_t
#define SUFFIX i64
#define LANE uint64_t
#define LOWEST INT64_MIN
#define HIGHEST INT64_MAX
#include "reduction/reduce_integers.inc"

#define INPUT int64_t
#define LANE uint64_t
#define TOTAL uint64_t
#define OUTPUT int64_t
#define REDUCER product_i64
#define MAP(x, p) ((LANE)(x))
#define JOIN(a, b) ((a) * (b))
#define START 1
#define IDENTITY true
#define FINISH(total, options) (total)
#include "reduction/reduce.inc"
#undef INPUT
#undef LANE
#undef TOTAL
#undef OUTPUT

/* -- bool -- */
static void some_finish(const void *totals, ssize_t n, const struct options *options, char *const outputs[2],
                        ssize_t begin, ssize_t step) {
    const int64_t *count = totals;
    (void)options;
    for (ssize_t j = 0; j < n; j++) outputs[0][begin + j * step] = count[j] != 0;
}

static void every_finish(const void *totals, ssize_t n, const struct options *options, char *const outputs[2],
                         ssize_t begin, ssize_t step) {
    const int64_t *count = totals;
    for (ssize_t j = 0; j < n; j++) outputs[0][begin + j * step] = count[j] == (int64_t)options->count;
}

#define INPUT uint8_t
#define SUFFIX u8
#define LANE uint8_t
#include "reduction/reduce_bools.inc"

#define INPUT uint64_t
#define SUFFIX u64
#define LANE uint64_t
#include "reduction/reduce_bools.inc"

#define INPUT float
#define SUFFIX f32
#define LANE uint32_t
#include "reduction/reduce_bools.inc"

#define INPUT double
#define SUFFIX f64
#define LANE uint64_t
#include "reduction/reduce_bools.inc"

/* -- positions -- */
/* The rows for which a position fits in 32 bits; the elements that are searched for an extreme. */
enum { PIECE = 1 << 30, SEARCHED = 4096 };

#define NEVER(x) false
#define WHERE_UNEQUAL(x) ((x) != (x))

static void position_start(void *totals, ssize_t width) {
    for (ssize_t j = 0; j < width; j++) ((int64_t *)totals)[width + j] = -1;
}

#define INDEX int32_t
#define IS_NAN WHERE_UNEQUAL
#define INPUT float
#define PLACE place_in_row_f32
#define REDUCER first_largest_f32
#define EXTREME largest_f32
#define CHOOSE(a, b) larger_f32(a, b)
#include "indexing/position.inc"
#define REDUCER first_smallest_f32
#define EXTREME smallest_f32
#define CHOOSE(a, b) smaller_f32(a, b)
#include "indexing/position.inc"
#undef INDEX
#undef INPUT
#undef PLACE
#undef IS_NAN
#define IS_NAN NEVER
#define INDEX int64_t
#define INPUT int64_t
#define REDUCER first_largest_i64
#define EXTREME largest_i64
#define CHOOSE(a, b) larger_i64(a, b)
#include "indexing/position.inc"
#define REDUCER first_smallest_i64
#define EXTREME smallest_i64
#define CHOOSE(a, b) smaller_i64(a, b)
#include "indexing/position.inc"
#undef INPUT
#undef IS_NAN
#define IS_NAN WHERE_UNEQUAL
#define INPUT double
#define PLACE place_in_row_f64
#define REDUCER first_largest_f64
#define EXTREME largest_f64
#define CHOOSE(a, b) larger_f64(a, b)
#include "indexing/position.inc"
#define REDUCER first_smallest_f64
#define EXTREME smallest_f64
#define CHOOSE(a, b) smaller_f64(a, b)
#include "indexing/position.inc"
#undef INPUT
#undef PLACE
#undef INDEX

/* -- moments -- */
static void moments_start(void *totals, ssize_t width) {
    for (ssize_t j = 0; j < 3 * width; j++) ((double *)totals)[j] = 0;
}

static void moments_join(void *totals, ssize_t width, ssize_t n, const void *others, ssize_t others_width,
                         ssize_t from) {
    double *count = totals, *mean = count + width, *square = mean + width;
    const double *other_count = (const double *)others + from, *other_mean = other_count + others_width,
                 *other_square = other_mean + others_width;
    for (ssize_t j = 0; j < n; j++) {
        double sum = count[j] + other_count[j], share = sum ? other_count[j] / sum : 0;
        double weight = count[j] * share, distance = other_mean[j] - mean[j];
        square[j] += other_square[j] + (sum ? distance * weight * distance : 0); /* a square may overflow: inf * 0 */
        mean[j] += sum ? distance * share : 0;
        count[j] = sum;
    }
}

#define TEMPLATE "reduction/moments.inc"
#include "core/each_real.h"

/* -- logsumexp -- */
static void logsumexp_join(void *totals, ssize_t width, ssize_t n, const void *others, ssize_t others_width,
                           ssize_t from) {
    double *largest = totals, *total = largest + width;
    const double *other_largest = (const double *)others + from, *other_total = other_largest + others_width;
    for (ssize_t j = 0; j < n; j++) {
        double m = largest[j] > other_largest[j] ? largest[j] : other_largest[j];
        total[j] = total[j] * exp(largest[j] - m) + other_total[j] * exp(other_largest[j] - m);
        largest[j] = m;
    }
}

#define TEMPLATE "reduction/logsumexp.inc"
#include "core/each_real.h"

/* -- the table -- */
#define REALS(name) [FLOAT32] = &name##_f32, [FLOAT64] = &name##_f64
#define INTEGERS(name)                                                                                              \
    [UINT8] = &name##_u8, [INT8] = &name##_i8, [INT16] = &name##_i16, [INT32] = &name##_i32, [INT64] = &name##_i64
#define BOOLS(name)                                                                                                 \
    [BOOL] = &name##_u8, [UINT8] = &name##_u8, [INT8] = &name##_u8, [INT64] = &name##_u64, [UINT64] = &name##_u64, \
    REALS(name)
static const struct reducer *const reducers[][NO_DTYPE + 1] = {
    [REDUCE_SUM] = {REALS(sum), INTEGERS(sum), [BOOL] = &nonzero_u8},
    [REDUCE_MEAN] = {REALS(sum)},
    [REDUCE_NANSUM] = {REALS(sum_without_nan), INTEGERS(sum), [BOOL] = &nonzero_u8},
    [REDUCE_PRODUCT] = {REALS(product), [INT64] = &product_i64},
    [REDUCE_LOGSUMEXP] = {REALS(logsumexp)},
    [REDUCE_ALL] = {BOOLS(every)},
    [REDUCE_ANY] = {BOOLS(some)},
    [REDUCE_NONZERO] = {BOOLS(nonzero)},
    [REDUCE_LARGEST] = {REALS(largest), INTEGERS(largest), [BOOL] = &largest_u8},
    [REDUCE_SMALLEST] = {REALS(smallest), INTEGERS(smallest), [BOOL] = &smallest_u8},
    [REDUCE_FIRST_LARGEST] = {REALS(first_largest), [INT64] = &first_largest_i64},
    [REDUCE_FIRST_SMALLEST] = {REALS(first_smallest), [INT64] = &first_smallest_i64},
    [REDUCE_MODULI] = {REALS(sum_of_moduli)},
    [REDUCE_SQUARES] = {REALS(root_of_squares)},
    [REDUCE_POWERS] = {REALS(root_of_powers)},
    [REDUCE_LARGEST_MODULUS] = {REALS(largest_modulus)},
    [REDUCE_VARIANCE] = {REALS(variance)},
    [REDUCE_DEVIATION] = {REALS(deviation)},
};

const struct reducer *reducer_of(enum reduction reduction, enum dtype dtype, enum dtype *result) {
    if ((unsigned)reduction >= sizeof reducers / sizeof *reducers) return NULL;
    switch (reduction) {
    case REDUCE_SUM:
    case REDUCE_NANSUM:
    case REDUCE_PRODUCT: *result = dtype < FLOAT16 ? INT64 : dtype; break;
    case REDUCE_NONZERO: *result = INT64; break;
    case REDUCE_ALL:
    case REDUCE_ANY: *result = dtype == UINT8 ? UINT8 : BOOL; break;
    default: *result = dtype;
    }
    return reducers[reduction][dtype];
}
