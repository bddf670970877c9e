/* All functions that Python calls: the only list of kernels. Read by the C compiler and, without the lines that begin with a
 * hash sign, by cffi. An array is the address of a NumPy array object; 0 stands for an absent one. A kernel returns a
 * `status` (array.h). Sizes come first after the arrays that they describe, results last. */
#ifndef COREFW_KERNELS_H
#define COREFW_KERNELS_H
#include <stddef.h>
#include <stdint.h>

/* -- machine: layout, threads, memory -- */
int machine_level(void);
int layout_is(uintptr_t address, uintptr_t data, int ndim, const intptr_t *shape, const intptr_t *strides, int type_number);
void set_bfloat16_number(int type_number);
void set_thread_count(int count);
uintptr_t memory_handler(void);
void memory_statistics(int64_t *figures); /* in use, peak, cached (bytes); allocations, hits */
void reset_peak_memory(void);
void empty_cache(void);
void set_cache_limit(size_t bytes);

/* -- elementwise -- */
struct elementwise_loop { const char *op; int inputs; int types[5]; uintptr_t loop, data; };
const struct elementwise_loop *elementwise_loops(void); /* the last one has no op */

/* -- activation (softmax) -- */
int softmax(uintptr_t input, int dim, uintptr_t output);

/* -- reduction, extremes, statistics, norms -- */
enum reduction {
    REDUCE_SUM, REDUCE_MEAN, REDUCE_NANSUM, REDUCE_PRODUCT, REDUCE_LOGSUMEXP, REDUCE_ALL, REDUCE_ANY, REDUCE_NONZERO,
    REDUCE_LARGEST, REDUCE_SMALLEST, REDUCE_FIRST_LARGEST, REDUCE_FIRST_SMALLEST, REDUCE_MODULI, REDUCE_SQUARES,
    REDUCE_POWERS, REDUCE_UNITS, REDUCE_LARGEST_MODULUS, REDUCE_SMALLEST_MODULUS, REDUCE_VARIANCE, REDUCE_DEVIATION
};
/* `dims`: bit d is set for each dimension d to reduce; 0 for all. `parameter`: the order of a norm, or the correction of
 * a variance. */
int reduce(int reduction, uintptr_t input, uint64_t dims, double parameter, uintptr_t output);
/* The same where results have a position: indices, and the elements themselves unless `values` is 0. */
int pick_extreme(int reduction, uintptr_t input, uint64_t dims, uintptr_t values, uintptr_t indices);

/* -- scan -- */
int cumsum(uintptr_t input, int dim, uintptr_t output);
int cumprod(uintptr_t input, int dim, uintptr_t output);
int logcumsumexp(uintptr_t input, int dim, uintptr_t output);
int cumulative_extreme(uintptr_t input, int dim, int largest, uintptr_t values, uintptr_t indices);

/* -- linear_algebra -- */

/* -- convolution -- */

/* -- pooling, resampling -- */

/* -- normalization -- */

/* -- classification, loss, likelihood -- */

/* -- attention -- */

/* -- recurrent -- */

/* -- memory, creation, joining, padding -- */

/* -- indexing, scattering, embedding -- */

/* -- sorting -- */
/* Of each row along `dim`: the first k elements in order, or one element: the most frequent, the one of rank k, the
 * median. NaN is the largest; equal elements stay in the order in which they came. */
enum rank { RANK_ALL, RANK_MODE, RANK_KTH, RANK_MEDIAN, RANK_NANMEDIAN };
int sort_along(uintptr_t input, int dim, int descending, int rank, intptr_t k, uintptr_t values, uintptr_t indices);
/* Where to insert the values into sorted rows (the last dimension): before equal elements, or after them. */
int search_sorted(uintptr_t sequence, uintptr_t values, int right, uintptr_t positions);
/* Whether each element is (or with `invert` is not) in a sorted array. */
int is_member(uintptr_t elements, uintptr_t sorted, int invert, uintptr_t output);
/* The runs of equal elements that `order`, an array of positions or 0 for none, leads through: one element of each, the
 * number of each element's run, the runs' sizes. The element of `count` becomes how many there are. */
int equal_runs(uintptr_t input, uintptr_t order, uintptr_t values, uintptr_t inverse, uintptr_t counts,
               uintptr_t count);

/* -- random -- */

/* -- optimizer -- */

#endif
