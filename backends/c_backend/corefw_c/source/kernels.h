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

/* -- scan -- */

/* -- linear_algebra -- */

/* -- convolution -- */

/* -- pooling, resampling -- */

/* -- normalization -- */

/* -- classification, loss, likelihood -- */

/* -- attention -- */

/* -- recurrent -- */

/* -- memory, creation, joining, padding -- */
int copy(uintptr_t source, uintptr_t target); /* broadcast and converted */
int cat(const uintptr_t *tensors, int count, int dim, uintptr_t output);
int stack(const uintptr_t *tensors, int count, int dim, uintptr_t output);
int repeat(uintptr_t input, uintptr_t output);
int flip(uintptr_t input, const intptr_t *reversed, uintptr_t output); /* whether, per dimension */
int roll(uintptr_t input, const intptr_t *shifts, uintptr_t output);   /* 0 to size - 1, per dimension */
int triangle(uintptr_t input, intptr_t diagonal, int lower, uintptr_t output);
int constant_pad(uintptr_t input, const intptr_t *before, uintptr_t value, uintptr_t output); /* before: per dimension */

/* -- indexing, scattering, embedding -- */
/* Blocks at positions: `index` is an index array for dimension `dim`, or, of `count` arrays for that many dimensions, the
 * array of their addresses. Positions count also back from the end if `from_end`. */
int index_read(uintptr_t input, int dim, uintptr_t index, int count, int from_end, uintptr_t output);
int index_write(uintptr_t target, int dim, uintptr_t index, int count, int from_end, uintptr_t values);
int index_sum(uintptr_t target, int dim, uintptr_t index, int count, int from_end, uintptr_t values);
int gather(uintptr_t input, int dim, uintptr_t index, uintptr_t output);
int scatter(uintptr_t target, int dim, uintptr_t index, uintptr_t source); /* source: also 0-d */
int scatter_combine(uintptr_t target, int dim, uintptr_t index, uintptr_t source, int reduction);
int embedding_gradient(uintptr_t grad, uintptr_t indices, intptr_t skipped, int shared, uintptr_t output);
int64_t count_true(uintptr_t mask); /* or a negative status */
int masked_read(uintptr_t input, uintptr_t mask, uintptr_t output);
int masked_write(uintptr_t target, uintptr_t mask, uintptr_t source);
int find_true(uintptr_t mask, uintptr_t output); /* output: flat positions, or one row of coordinates for each */

/* -- sorting -- */

/* -- random -- */

/* -- optimizer -- */

#endif
