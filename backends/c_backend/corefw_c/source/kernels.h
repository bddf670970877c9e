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
/* The options of windows, int64: sizes, strides, paddings, steps in each dimension; with stride 0 they divide it evenly. */
int max_pool(uintptr_t input, uintptr_t options, uintptr_t values, uintptr_t indices);
int max_pool_backward(uintptr_t grad, uintptr_t indices, uintptr_t output);
int avg_pool(uintptr_t input, uintptr_t options, int padding_counts, double divisor, uintptr_t output);
int avg_pool_backward(uintptr_t grad, uintptr_t options, int padding_counts, double divisor, uintptr_t output);
/* Positions (int32) and weights of each dimension, one after the other: arrays of (elements per place, places). */
int resample(uintptr_t input, const uintptr_t *arrays, int count, uintptr_t output);

/* -- normalization -- */

/* -- classification, loss, likelihood -- */

/* -- attention -- */

/* -- recurrent -- */

/* -- memory, creation, joining, padding -- */

/* -- indexing, scattering, embedding -- */

/* -- sorting -- */

/* -- random -- */
/* The ops' parameters, as docs/random.md rounds them; the type is that of the output. */
int uniform_at(uint64_t seed, uint64_t offset, double bottom, double span, double largest, uintptr_t output);
int integers_at(uint64_t seed, uint64_t offset, uint64_t low, uint64_t span, int is_signed, uintptr_t output);
int normal_at(uint64_t seed, uint64_t offset, double mean, double std, uintptr_t output);
int bernoulli_at(double p, uintptr_t probabilities, uint64_t seed, uint64_t offset, uintptr_t output); /* p if 0 */
int exponential_at(uint64_t seed, uint64_t offset, double lambd, uintptr_t output);
int cauchy_at(uint64_t seed, uint64_t offset, double median, double sigma, uintptr_t output);
int log_normal_at(uint64_t seed, uint64_t offset, double mean, double std, uintptr_t output);
int geometric_at(uint64_t seed, uint64_t offset, double p, uintptr_t output);
int permutation_at(uint64_t seed, uint64_t offset, uintptr_t output);
int multinomial_at(uintptr_t weights, intptr_t samples, int replacement, uint64_t seed, uint64_t offset, uintptr_t output);
int masked_dropout(uintptr_t input, double p, uint64_t seed, uint64_t offset, uintptr_t output, uintptr_t mask);
int masked_dropout_backward(uintptr_t grad, uintptr_t mask, double p, uintptr_t output);

/* -- optimizer -- */
/* Lists are the addresses of Python's lists of arrays. */
int list_is(uintptr_t list, uintptr_t first, uintptr_t second);
int sgd_step(uintptr_t params, uintptr_t grads, uintptr_t buffers, const unsigned char *first, intptr_t firsts, double lr,
             double momentum, double dampening, double weight_decay, int nesterov, int maximize);
int adam_step(uintptr_t params, uintptr_t grads, uintptr_t exp_avgs, uintptr_t exp_avg_sqs, uintptr_t max_exp_avg_sqs,
              uintptr_t steps, double lr, double beta1, double beta2, double eps, double weight_decay, int decoupled,
              int amsgrad, int maximize);
int adadelta_step(uintptr_t params, uintptr_t grads, uintptr_t square_avgs, uintptr_t acc_deltas, uintptr_t steps, double lr,
                  double rho, double eps, double weight_decay, int maximize);
int adagrad_step(uintptr_t params, uintptr_t grads, uintptr_t sums, uintptr_t steps, double lr, double lr_decay, double eps,
                 double weight_decay, int maximize);
int adamax_step(uintptr_t params, uintptr_t grads, uintptr_t exp_avgs, uintptr_t exp_infs, uintptr_t steps, double lr,
                double beta1, double beta2, double eps, double weight_decay, int maximize);
int nadam_step(uintptr_t params, uintptr_t grads, uintptr_t exp_avgs, uintptr_t exp_avg_sqs, uintptr_t mu_products,
               uintptr_t steps, double lr, double beta1, double beta2, double eps, double weight_decay,
               double momentum_decay, int decoupled, int maximize);
int radam_step(uintptr_t params, uintptr_t grads, uintptr_t exp_avgs, uintptr_t exp_avg_sqs, uintptr_t steps, double lr,
               double beta1, double beta2, double eps, double weight_decay, int decoupled, int maximize);
int rmsprop_step(uintptr_t params, uintptr_t grads, uintptr_t square_avgs, uintptr_t momentum_buffers, uintptr_t grad_avgs,
                 uintptr_t steps, double lr, double alpha, double eps, double weight_decay, double momentum, int centered,
                 int maximize);
int scale_step(uintptr_t tensors, uintptr_t factor);
int total_norm(uintptr_t tensors, double order, uintptr_t output);

#endif
