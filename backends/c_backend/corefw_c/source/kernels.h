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
/* sizes: stride, padding and dilation of every axis; bias may be absent */
int convolution(uintptr_t input, uintptr_t weight, uintptr_t bias, int count, const intptr_t *sizes, int transposed,
                intptr_t groups, uintptr_t output);
int convolution_weight(uintptr_t input, uintptr_t output_grad, int count, const intptr_t *sizes, intptr_t groups,
                       uintptr_t weight_grad);
/* options: kernel size, dilation, padding and stride, each for height and width */
int im2col(uintptr_t input, const intptr_t options[8], uintptr_t output);
int col2im(uintptr_t input, const intptr_t options[8], uintptr_t output);

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
