/* All functions that Python calls: the only list of kernels. Read by the C compiler and, without the lines that begin with a
 * hash sign, by cffi. An array is the address of a NumPy array object; 0 stands for an absent one. A kernel returns a
 * `status` (array.h); it changes nothing if an array that it writes to is read-only. Sizes come first after the arrays
 * that they describe, results last. */
#ifndef COREFW_KERNELS_H
#define COREFW_KERNELS_H
#include <stddef.h>
#include <stdint.h>

/* -- machine: layout, threads, memory -- */
int machine_level(void);
/* What half types and int8 are multiplied with: float32; dot products of pairs and of four bytes (AVX512-BF16 and
 * AVX512-VNNI); tiles (AMX). */
enum products { BY_FLOATS, BY_PAIRS, BY_TILES };
int machine_products(void);  /* the best that the processor has */
int permission_of_tiles(void); /* asks the system, which keeps their state; 0 or the number of an error */
int tiles_are_emulated(void);  /* whether functions stand in for them, on any machine */
int layout_is(uintptr_t address, uintptr_t data, int ndim, const intptr_t *shape, const intptr_t *strides, int type_number);
int is_read_only(uintptr_t address);
void set_types(uintptr_t array_class, uintptr_t descriptor_class, int bfloat16); /* NumPy's classes, the number of a dtype */
void set_makers(uintptr_t empty, uintptr_t zeros, uintptr_t view, uintptr_t keep); /* NumPy's functions (array.h) */
void set_thread_count(int count);
uintptr_t memory_handler(void); /* for NumPy */
uintptr_t marking_handler(void); /* one that writes a mark to what it gives out */
enum { MARK = 0xA5 };
_Bool is_marked(uintptr_t address, size_t size); /* whether memory is as that has given it out */
struct memory_statistics { int64_t in_use, peak, cached, allocations, hits; }; /* the first three in bytes */
struct memory_statistics memory_statistics(void);
void reset_peak_memory(void);
void empty_cache(void);
void set_cache_limit(int64_t bytes);

/* -- elementwise -- */
struct elementwise_loop {
    const char *op;
    int tensors, numbers; /* inputs, at most 5; of a number the first element is taken, whatever its stride */
    int cost;             /* of an element, in elementary steps */
    int types[6];         /* enum dtype of the inputs; the last one of the result */
    void (*span)(intptr_t n, char *const *in, char *out);
    void (*halves)(intptr_t n, char *const *in, char *out); /* the same over tensors of a half type as stored, or NULL */
    void (*beside)(intptr_t n, char *const *in, char *out); /* the span where the second input is one element; or NULL */
    int as_stored; /* whether the span takes half types as they are, rather than as float */
    void (*numpy)(char **args, const intptr_t *n, const intptr_t *steps, void *data); /* in place of a span; or NULL */
    void *data;
};
const struct elementwise_loop *elementwise_loops(int group); /* the last one has no op; NULL if there is no such group */
/* A loop of one of NumPy's ufuncs, by its place there; NULL if that takes other types. It lives as long as the process. */
const struct elementwise_loop *numpy_loop(uintptr_t ufunc, int place, int cost);
void elementwise_run(char **args, const intptr_t *dimensions, const intptr_t *steps, void *loop);
/* The loop over inputs that broadcast to the output, in parallel. */
int elementwise_apply(const struct elementwise_loop *loop, int count, const uintptr_t *inputs, uintptr_t output);
/* A new Python object, taking inputs and perhaps out=, that runs one of some loops or, with what these do not take, calls
 * a ufunc. It is given a tuple: the ufunc, numpy.empty_like, the `struct typed_loop`s as bytes, and what keeps their
 * dtypes alive. To be called with Python's global lock. */
struct typed_loop {
    uint64_t key; /* 1, then the enum dtype of each input, four bits each */
    const struct elementwise_loop *loop;
    const void *dtype; /* of the result */
};
void *with_fast_path(void *parts);

/* -- direct: a few shims in C, for few elements -- */
void *direct_function(const char *name); /* NULL if there is none */
/* A new Python object that calls a shim in C or, with what that does not take, one in Python. It is given a tuple: the one
 * in Python, the address of the other one, and numbers for that. To be called with Python's global lock. */
void *with_direct_call(void *shims);
/* Methods and attributes of the frontend's classes in C: a tuple of what they need to know of it, and a new descriptor, of a
 * tuple of class, name, what is there, and documentation. To be called with Python's global lock. */
void *set_frontend(void *parts);
void *method_in_c(void *given);

/* -- fusion: several elementwise loops, one after the other -- */
enum { FUSED_INPUTS = 16, FUSED_OUTPUTS = 8, FUSED_STEPS = 48, FUSED_NUMBERS = 144, FUSED_PLACES = 256 };
/* Places hold blocks of values of which half types are float: those of the inputs come first, then the numbers, then
 * blocks that steps write to. */
struct fused_step {
    const struct elementwise_loop *loop; /* NULL for a conversion from one type to another one */
    int operands[5], result;             /* places */
    int from, to, rounded;               /* enum dtype; a half type to whose numbers the results are rounded */
};
typedef void (*fused_span)(intptr_t n, char *const *places);
struct fusion {
    int inputs, outputs, numbers, blocks, steps;
    int widest, cost; /* the size of the largest elements in bytes; the cost of an element */
    int input_types[16], output_types[8], output_places[8];
    int summed, sum_type, mean; /* the place of what is summed, -1 if nothing is */
    uint64_t dims;              /* bit d is set for each dimension to sum over */
    uint64_t number[144];       /* the bytes of float or double */
    struct fused_step step[48];
    fused_span compiled; /* what does the work of the steps, NULL if nothing does */
};
struct fusion *fusion_new(const struct fusion *program); /* a copy that stays; NULL without memory */
/* Have a function, whose address is given, do the work of the steps; whether it does on samples, arrays of a block's size
 * at least in the types that places hold. */
void fusion_compiled(struct fusion *fusion, uintptr_t span);
int fusion_agrees(const struct fusion *fusion, uintptr_t span, int count, const uintptr_t *samples);
/* arrays: the inputs, which broadcast, the outputs, contiguous, and the sums. An output may be an input. UNSUPPORTED
 * where arrays overlap otherwise, or are not aligned. */
int fused_run(const struct fusion *fusion, int count, const uintptr_t *arrays);

/* -- activation (softmax) -- */
int softmax(uintptr_t input, int dim, uintptr_t output);
int log_softmax(uintptr_t input, int dim, uintptr_t output);
int softmax_backward(uintptr_t grad, uintptr_t output, int dim, uintptr_t result);
int log_softmax_backward(uintptr_t grad, uintptr_t output, int dim, uintptr_t result);

/* -- reduction, extremes, statistics, norms -- */
enum reduction {
    REDUCE_SUM, REDUCE_MEAN, REDUCE_NANSUM, REDUCE_PRODUCT, REDUCE_LOGSUMEXP, REDUCE_ALL, REDUCE_ANY, REDUCE_NONZERO,
    REDUCE_LARGEST, REDUCE_SMALLEST, REDUCE_FIRST_LARGEST, REDUCE_FIRST_SMALLEST, REDUCE_MODULI, REDUCE_SQUARES,
    REDUCE_POWERS, REDUCE_LARGEST_MODULUS, REDUCE_VARIANCE, REDUCE_DEVIATION
};
/* `dims`: bit d is set for each dimension d to reduce; 0 for all. `parameter`: the order of a norm, or the correction of
 * a variance. */
int reduce(int reduction, uintptr_t input, uint64_t dims, double parameter, uintptr_t output);
/* The same where results have a position: indices, and the elements themselves unless `values` is 0. */
int argreduce(int reduction, uintptr_t input, uint64_t dims, uintptr_t values, uintptr_t indices);

/* -- scan -- */
int cumsum(uintptr_t input, int dim, uintptr_t output);
int cumprod(uintptr_t input, int dim, uintptr_t output);
int logcumsumexp(uintptr_t input, int dim, uintptr_t output);
int cumulative_extreme(uintptr_t input, int dim, int largest, uintptr_t values, uintptr_t indices);
int linear_recurrence(uintptr_t factor, uintptr_t input, int dim, uintptr_t output);

/* -- linear_algebra -- */
/* output = beta * added + alpha * input @ other, for batches that broadcast; added: 0 for none, else it expands to the
 * output. transposed: 1 if the matrices of input are given transposed, 2 if those of other are, 0 if none.
 * Of int8, with nothing added, the output is int32. products: what half types and int8 are multiplied with. */
int matmul(uintptr_t input, uintptr_t other, uintptr_t added, int transposed, double beta, double alpha, int products,
           uintptr_t output);

int cross(uintptr_t input, uintptr_t other, int dim, uintptr_t output);

/* -- quantization -- */
/* output = scale * input @ weight.T + bias for an input that is rounded to 256 steps, and a weight of int8, whose rows have
 * the sums of int32. scale: one number or one for each row, of float32, as the bias, which may be absent; output: of the
 * input's dtype, float32 or a half type. All contiguous. */
int quantized_linear(uintptr_t input, uintptr_t weight, uintptr_t scale, uintptr_t sums, uintptr_t bias, int products,
                     uintptr_t output);

/* -- convolution -- */
/* sizes: stride, padding and dilation of every axis; bias may be absent. products: what pairs of bfloat16 are multiplied
 * with. */
int convolution(uintptr_t input, uintptr_t weight, uintptr_t bias, int count, const intptr_t *sizes, int transposed,
                intptr_t groups, int products, uintptr_t output);
int convolution_weight(uintptr_t input, uintptr_t output_grad, int count, const intptr_t *sizes, intptr_t groups,
                       int products, uintptr_t weight_grad);
/* options: kernel size, dilation, padding and stride, each for height and width */
int im2col(uintptr_t input, const intptr_t options[8], uintptr_t output);
int col2im(uintptr_t input, const intptr_t options[8], uintptr_t output);

/* -- pooling, resampling -- */
/* The options of windows, int64: sizes, strides, paddings, steps in each dimension; with stride 0 they divide it evenly. */
int max_pool(uintptr_t input, uintptr_t options, uintptr_t values, uintptr_t indices);
int max_pool_backward(uintptr_t grad, uintptr_t indices, uintptr_t output);
int avg_pool(uintptr_t input, uintptr_t options, int padding_counts, double divisor, uintptr_t output);
int avg_pool_backward(uintptr_t grad, uintptr_t options, int padding_counts, double divisor, uintptr_t output);
/* Positions (int32) and weights of each dimension, one after the other: arrays of (elements per place, places). */
int resample(uintptr_t input, const uintptr_t *arrays, int count, uintptr_t output);

/* -- normalization: of groups (rows of channels of elements) and of channels (samples of channels of elements) -- */
int normalize_groups(uintptr_t input, intptr_t channels, uintptr_t weight, uintptr_t bias, double eps, uintptr_t output,
                     uintptr_t mean, uintptr_t scale); /* channels: in a group; without a mean, only scales */
/* added: what is added to the result, or none; positive: whether the positive part of all that is wanted. */
int normalize_channels(uintptr_t input, uintptr_t weight, uintptr_t bias, double eps, uintptr_t added, int positive,
                       uintptr_t output, uintptr_t mean, uintptr_t variance);
int affine_channels(uintptr_t input, intptr_t elements, uintptr_t centre, uintptr_t factor, uintptr_t shift,
                    uintptr_t output); /* (input - centre) * factor + shift; centre and shift may be absent */
int normalize_groups_backward(uintptr_t gradient, uintptr_t input, intptr_t channels, uintptr_t weight, uintptr_t mean,
                              uintptr_t scale, uintptr_t grad_input, uintptr_t grad_weight, uintptr_t grad_bias);
int normalize_channels_backward(uintptr_t gradient, uintptr_t input, intptr_t elements, uintptr_t weight,
                                uintptr_t mean, uintptr_t scale, uintptr_t grad_input, uintptr_t grad_weight,
                                uintptr_t grad_bias);

/* -- alignment, classification, loss, likelihood: targets are int64; reduction: 0 none, 1 sum, 2 mean -- */
enum loss_reduction { NONE, SUM, MEAN }; /* arrays.py counts as this */
int class_nll(uintptr_t input, uintptr_t target, uintptr_t weight, int64_t ignored, int reduction, uintptr_t loss);
int class_nll_backward(uintptr_t grad, uintptr_t target, uintptr_t weight, int64_t ignored, int reduction,
                       uintptr_t result);
int class_cross_entropy(uintptr_t input, uintptr_t target, int64_t ignored, int reduction, uintptr_t loss,
                        uintptr_t normalizer);
int class_cross_entropy_backward(uintptr_t grad, uintptr_t input, uintptr_t normalizer, uintptr_t target,
                                 int64_t ignored, int reduction, uintptr_t result);
int ctc_costs(uintptr_t log_probs, uintptr_t targets, uintptr_t input_lengths, uintptr_t target_lengths, int64_t blank,
              int zero_infinity, uintptr_t result);
int ctc_costs_backward(uintptr_t grad, uintptr_t log_probs, uintptr_t targets, uintptr_t input_lengths,
                       uintptr_t target_lengths, int64_t blank, int zero_infinity, uintptr_t result);
int squared_error(uintptr_t input, uintptr_t target, int reduction, uintptr_t loss);
int squared_error_backward(uintptr_t grad, uintptr_t input, uintptr_t target, int reduction, uintptr_t result);
int bernoulli_nll(uintptr_t input, uintptr_t target, uintptr_t loss);
int logistic_loss(uintptr_t input, uintptr_t target, uintptr_t loss);

/* -- attention -- */
int attention(uintptr_t query, uintptr_t key, uintptr_t value, uintptr_t bias, int causal, double scale,
              int products, uintptr_t output, uintptr_t logsumexp);
int attention_backward(uintptr_t gradient, uintptr_t query, uintptr_t key, uintptr_t value, uintptr_t output,
                       uintptr_t logsumexp, uintptr_t bias, int causal, double scale, int products,
                       uintptr_t grad_query, uintptr_t grad_key, uintptr_t grad_value);

/* -- recurrent: relu and tanh recurrences (kinds 0 and 1), LSTM (2), GRU (3); products: what multiplies half types -- */
int recurrence(int kind, intptr_t count, const intptr_t *batch_sizes, int reverse, int products, uintptr_t input,
               uintptr_t hx, uintptr_t cx, uintptr_t weight, uintptr_t bias, uintptr_t output, uintptr_t hn,
               uintptr_t cn, uintptr_t gates, uintptr_t cells);
int recurrence_backward(int kind, intptr_t count, const intptr_t *batch_sizes, int reverse, int products, uintptr_t hx,
                        uintptr_t cx, uintptr_t weight, uintptr_t output, uintptr_t gates, uintptr_t cells,
                        uintptr_t grad_output, uintptr_t grad_hn, uintptr_t grad_cn, uintptr_t grad_gates,
                        uintptr_t grad_cells, uintptr_t grad_input, uintptr_t grad_hx, uintptr_t grad_cx,
                        uintptr_t grad_weight, uintptr_t grad_bias);

/* -- memory, creation, joining, padding -- */
enum { SMALL = 4096 }; /* arrays of fewer bytes are moved by NumPy, whose call costs less */
int integer_range(uint64_t start, uint64_t step, uintptr_t output); /* start + i * step, which wraps */
int real_range(double start, double step, uintptr_t output);
int real_linspace(double start, double end, uintptr_t output); /* from both ends */
int identity(uintptr_t output);
int copy(uintptr_t source, uintptr_t target); /* broadcast and converted */
int cat(const uintptr_t *tensors, int count, int dim, uintptr_t output);
int stack(const uintptr_t *tensors, int count, int dim, uintptr_t output);
int repeat(uintptr_t input, uintptr_t output);
int flip(uintptr_t input, const intptr_t *reversed, uintptr_t output); /* whether, per dimension */
int roll(uintptr_t input, const intptr_t *shifts, uintptr_t output);   /* 0 to size - 1, per dimension */
int triangle(uintptr_t input, intptr_t diagonal, int lower, uintptr_t output);
int constant_pad(uintptr_t input, const intptr_t *before, uintptr_t value, uintptr_t output); /* before: per dimension */
int indexed_pad(uintptr_t input, const intptr_t *before, int mode, uintptr_t output); /* modes as in padding.py */
int indexed_pad_gradient(uintptr_t grad, const intptr_t *before, int mode, uintptr_t output);

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

/* -- sparse -- */
/* Of the entries of row r of a sparse matrix, from crow[r] to crow[r + 1] - 1, entry e stands in column col[e]. */
int csr_matmul(uintptr_t values, uintptr_t other, uintptr_t crow, uintptr_t col, uintptr_t output);
int csr_transposed_matmul(uintptr_t values, uintptr_t other, uintptr_t crow, uintptr_t col, uintptr_t output);
int csr_sampled_matmul(uintptr_t left, uintptr_t right, uintptr_t crow, uintptr_t col, uintptr_t output);

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
/* An optimizer's step is given a `struct step` (optimizer/step.h). */
int sgd_step(const char *step);
int adam_step(const char *step);
int adadelta_step(const char *step);
int adagrad_step(const char *step);
int adamax_step(const char *step);
int nadam_step(const char *step);
int radam_step(const char *step);
int rmsprop_step(const char *step);
int scale_step(uintptr_t tensors, uintptr_t factor);
int total_norm(uintptr_t tensors, double order, uintptr_t output);

/* -- replay -- */
/* A call: a function that reads its arguments, a word each, and calls a kernel with them. */
union word { int64_t integer; double real; uintptr_t address; };
struct prepared { int (*run)(const union word *arguments); const union word *arguments; };
struct trampoline { const char *kernel; int (*run)(const union word *arguments); };
const struct trampoline *trampolines(void); /* of all kernels; the last one has no name (building/trampolines.py) */
/* Make the calls from number `begin` on; returns the number of the first one whose status is not 0, or `end`. */
intptr_t run_prepared(const struct prepared *calls, intptr_t begin, intptr_t end);
/* Have arrays, which own no memory, show that of arrays in a Python list, from so many bytes behind their first element;
 * UNSUPPORTED, before anything is done, if one of these is not as aligned and writable as it was (NumPy's flags). */
struct pointed { uintptr_t array; intptr_t source, offset; int flags; };
int point_arrays(const struct pointed *pointed, intptr_t count, uintptr_t list);
/* Both, one after the other; -1 if the arrays cannot be shown. */
intptr_t point_and_run(const struct pointed *pointed, intptr_t count, uintptr_t list, const struct prepared *calls, intptr_t end);
/* What proves calls: whether the bytes at two addresses are equal. */
_Bool is_same(uintptr_t address, uintptr_t other, size_t size);

#endif
