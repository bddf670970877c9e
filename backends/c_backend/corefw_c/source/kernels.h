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
/* output = beta * added + alpha * input @ other, for batches that broadcast; added: 0 for none, else it expands to the
 * output. turned: 1 if the matrices of input are given transposed, 2 if those of other are, 0 if none. */
int matmul(uintptr_t input, uintptr_t other, uintptr_t added, int turned, double beta, double alpha, uintptr_t output);
int has_bfloat16_products(void); /* whether matmul takes bfloat16, without factors */

/* -- convolution -- */

/* -- pooling, resampling -- */

/* -- normalization -- */

/* -- classification, loss, likelihood -- */

/* -- attention -- */

/* -- recurrent -- */

/* -- memory, creation, joining, padding -- */

/* -- indexing, scattering, embedding -- */

/* -- sorting -- */

/* -- random -- */

/* -- optimizer -- */

#endif
