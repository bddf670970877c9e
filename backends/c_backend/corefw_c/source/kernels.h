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
/* output = beta * added + alpha * input @ other, for batches that broadcast; added: 0 for none, else it expands to the output.
 * turned: 1 if the matrices of input are given transposed, 2 if those of other are, 0 if none. */
int matmul(uintptr_t input, uintptr_t other, uintptr_t added, int turned, double beta, double alpha, uintptr_t output);

/* -- convolution -- */

/* -- pooling, resampling -- */

/* -- normalization -- */

/* -- classification, loss, likelihood -- */

/* -- attention -- */
int attention(uintptr_t query, uintptr_t key, uintptr_t value, uintptr_t bias, int causal, double scale, uintptr_t output,
              uintptr_t logsumexp);
int attention_backward(uintptr_t gradient, uintptr_t query, uintptr_t key, uintptr_t value, uintptr_t output,
                       uintptr_t logsumexp, uintptr_t bias, int causal, double scale, uintptr_t grad_query,
                       uintptr_t grad_key, uintptr_t grad_value);

/* -- recurrent: relu and tanh recurrences (kinds 0 and 1), LSTM (2), GRU (3) -- */
int recurrence(int kind, intptr_t count, const intptr_t *batch_sizes, int reverse, uintptr_t input, uintptr_t hx,
               uintptr_t cx, uintptr_t weight, uintptr_t bias, uintptr_t output, uintptr_t hn, uintptr_t cn,
               uintptr_t gates, uintptr_t cells);
int recurrence_backward(int kind, intptr_t count, const intptr_t *batch_sizes, int reverse, uintptr_t hx, uintptr_t cx,
                        uintptr_t weight, uintptr_t output, uintptr_t gates, uintptr_t cells, uintptr_t grad_output,
                        uintptr_t grad_hn, uintptr_t grad_cn, uintptr_t grad_gates, uintptr_t grad_cells,
                        uintptr_t grad_input, uintptr_t grad_hx, uintptr_t grad_cx, uintptr_t grad_weight,
                        uintptr_t grad_bias);

/* -- memory, creation, joining, padding -- */

/* -- indexing, scattering, embedding -- */

/* -- sorting -- */

/* -- random -- */

/* -- optimizer -- */

#endif
