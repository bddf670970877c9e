/* The inner loop of all elementwise functions, as NumPy's ufuncs call it: strides, half types, threads. */
#include "elementwise/elementwise.h"
#include "core/halves.h"
#include "core/strided.h"
#include "core/threads.h"

#include <string.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#else
#include <fenv.h>
#endif

enum { BLOCK = 8192 }; /* bytes of an operand that are copied at a time to be contiguous */

struct job {
    const struct elementwise_loop *loop;
    char *const *args; /* the inputs, then the result */
    const intptr_t *steps;
};

static bool is_half(int dtype) { return dtype == FLOAT16 || dtype == BFLOAT16; }

#define FILL(T) \
    do { \
        T element; \
        memcpy(&element, from, sizeof element); \
        for (intptr_t i = 0; i < n; i++) ((T *)to)[i] = element; \
    } while (0)

/* n times one element, as the loop takes it. */
static void repeat_element(intptr_t n, int dtype, bool widen, const char *from, char *to) {
    float wide;
    if (widen) {
        (dtype == FLOAT16 ? widen_float16 : widen_bfloat16)(1, from, &wide);
        from = (const char *)&wide;
    }
    switch (widen ? sizeof wide : size_of(dtype)) {
    case 1: FILL(uint8_t); break;
    case 2: FILL(uint16_t); break;
    case 4: FILL(uint32_t); break;
    case 8: FILL(uint64_t); break;
    default: copy_row(n, to, 16, from, 0, 16);
    }
}

/* n elements of an input that is strided or of a half type, as the loop takes them. */
static void read_block(intptr_t n, int dtype, bool widen, const char *from, intptr_t step, char *to) {
    size_t size = size_of(dtype);
    if (step == 0) {
        repeat_element(n, dtype, widen, from, to);
        return;
    }
    if (!widen) {
        copy_row(n, to, (ssize_t)size, from, step, size);
        return;
    }
    uint16_t halves[BLOCK / sizeof(float)];
    if (step != 2) {
        copy_row(n, (char *)halves, 2, from, step, 2);
        from = (const char *)halves;
    }
    (dtype == FLOAT16 ? widen_float16 : widen_bfloat16)(n, from, to);
}

/* n results, to where the caller wants them. */
static void write_block(intptr_t n, int dtype, bool narrow, const char *from, char *to, intptr_t step) {
    size_t size = size_of(dtype);
    if (!narrow) {
        copy_row(n, to, step, from, (ssize_t)size, size);
        return;
    }
    uint16_t halves[BLOCK / sizeof(float)], *target = step == 2 ? (uint16_t *)to : halves;
    (dtype == FLOAT16 ? narrow_float16 : narrow_bfloat16)(n, from, target);
    if (step != 2) copy_row(n, to, step, (const char *)halves, 2, 2);
}

/* The elements begin to end: contiguous operands as they lie, others by blocks through buffers. */
static void run_range(void *context, ssize_t begin, ssize_t end) {
    const struct job *job = context;
    const struct elementwise_loop *loop = job->loop;
    int tensors = loop->tensors, inputs = tensors + loop->numbers, result_type = loop->types[5];
    char *at[6];
    intptr_t steps[6], size, widest = 1;
    bool direct[6], widen[6], all_direct = true;
    if (loop->numpy) { /* NumPy's loops take strides, and have ways of their own for operands of one element */
        intptr_t n = end - begin;
        for (int i = 0; i <= inputs; i++) at[i] = job->args[i] + begin * job->steps[i];
        loop->numpy(at, &n, job->steps, loop->data);
        return;
    }
    for (int i = 0; i <= inputs; i++) {
        int dtype = i < inputs ? loop->types[i] : result_type;
        bool number = i >= tensors && i < inputs;
        steps[i] = number ? 0 : job->steps[i];
        at[i] = job->args[i] + begin * steps[i];
        size = size_of(dtype);
        widen[i] = is_half(dtype) && widens(loop, number);
        direct[i] = !widen[i] && (number || steps[i] == size);
        size = widen[i] ? (intptr_t)sizeof(float) : size;
        widest = size > widest ? size : widest;
        all_direct &= direct[i];
    }
    if (all_direct) {
        run_span(loop, end - begin, at, at[inputs]);
        return;
    }
    char buffers[6][BLOCK] __attribute__((aligned(64)));
    char *operands[6];
    intptr_t block = BLOCK / widest, first = end - begin < block ? end - begin : block;
    for (int i = 0; i < inputs; i++)
        if (!direct[i] && steps[i] == 0)
            read_block(i < tensors ? first : 1, loop->types[i], widen[i], at[i], 0, buffers[i]);
    for (intptr_t left = end - begin; left > 0; left -= block) {
        intptr_t n = left < block ? left : block;
        for (int i = 0; i < inputs; i++) {
            if (!direct[i] && steps[i] != 0) read_block(n, loop->types[i], widen[i], at[i], steps[i], buffers[i]);
            operands[i] = direct[i] ? at[i] : buffers[i];
        }
        run_span(loop, n, operands, direct[inputs] ? at[inputs] : buffers[inputs]);
        if (!direct[inputs]) write_block(n, result_type, widen[inputs], buffers[inputs], at[inputs], steps[inputs]);
        for (int i = 0; i <= inputs; i++) at[i] += n * steps[i];
    }
}

void elementwise_run(char **args, const intptr_t *dimensions, const intptr_t *steps, void *loop) {
    struct job job = {loop, args, steps};
#if defined(__SSE__)
    unsigned before = _mm_getcsr();
#endif
    ssize_t n = dimensions[0], grain = vector_grain_for(job.loop->cost);
    n < 2 * grain ? run_range(&job, 0, n) : parallel_for(n, grain, run_range, &job);
#if defined(__SSE__)
    if ((_mm_getcsr() & ~before) & _MM_EXCEPT_MASK & ~_MM_EXCEPT_INEXACT) _mm_setcsr(before); /* or NumPy would warn */
#else
    feclearexcept(FE_ALL_EXCEPT);
#endif
}

const struct elementwise_loop *elementwise_loops(int group) {
    const struct elementwise_loop *groups[] = {loops_f32, loops_f64, loops_integers, loops_choose, loops_bits, NULL};
    return groups[group < 0 || group > 5 ? 5 : group];
}
