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
int log_softmax(uintptr_t input, int dim, uintptr_t output);
int softmax_backward(uintptr_t grad, uintptr_t output, int dim, uintptr_t result);
int log_softmax_backward(uintptr_t grad, uintptr_t output, int dim, uintptr_t result);

/* -- reduction, extremes, statistics, norms -- */

/* -- scan -- */

/* -- linear_algebra -- */

/* -- convolution -- */

/* -- pooling, resampling -- */

/* -- normalization: of groups (rows of channels of elements) and of channels (samples of channels of elements) -- */
int normalize_groups(uintptr_t input, intptr_t channels, uintptr_t weight, uintptr_t bias, double eps, uintptr_t output,
                     uintptr_t mean, uintptr_t scale); /* channels: in a group; without a mean, only scales */
int normalize_channels(uintptr_t input, uintptr_t weight, uintptr_t bias, double eps, uintptr_t output, uintptr_t mean,
                       uintptr_t variance);
int affine_channels(uintptr_t input, intptr_t elements, uintptr_t centre, uintptr_t factor, uintptr_t shift,
                    uintptr_t output); /* (input - centre) * factor + shift; centre and shift may be absent */
int normalize_groups_backward(uintptr_t gradient, uintptr_t input, intptr_t channels, uintptr_t weight, uintptr_t mean,
                              uintptr_t scale, uintptr_t grad_input, uintptr_t grad_weight, uintptr_t grad_bias);
int normalize_channels_backward(uintptr_t gradient, uintptr_t input, intptr_t elements, uintptr_t weight,
                                uintptr_t mean, uintptr_t scale, uintptr_t grad_input, uintptr_t grad_weight,
                                uintptr_t grad_bias);

/* -- classification, loss, likelihood: targets are int64; reduction: 0 none, 1 sum, 2 mean -- */
int class_nll(uintptr_t input, uintptr_t target, uintptr_t weight, int64_t ignored, int reduction, uintptr_t loss);
int class_nll_backward(uintptr_t grad, uintptr_t target, uintptr_t weight, int64_t ignored, int reduction,
                       uintptr_t result);
int class_cross_entropy(uintptr_t input, uintptr_t target, int64_t ignored, int reduction, uintptr_t loss,
                        uintptr_t logsumexp);
int class_cross_entropy_backward(uintptr_t grad, uintptr_t input, uintptr_t logsumexp, uintptr_t target,
                                 int64_t ignored, int reduction, uintptr_t result);
int squared_error(uintptr_t input, uintptr_t target, int reduction, uintptr_t loss);
int squared_error_backward(uintptr_t grad, uintptr_t input, uintptr_t target, int reduction, uintptr_t result);
int bernoulli_nll(uintptr_t input, uintptr_t target, uintptr_t loss);
int logistic_loss(uintptr_t input, uintptr_t target, uintptr_t loss);

/* -- attention -- */

/* -- recurrent -- */

/* -- memory, creation, joining, padding -- */

/* -- indexing, scattering, embedding -- */

/* -- sorting -- */

/* -- random -- */

/* -- optimizer -- */

#endif
