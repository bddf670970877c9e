/* Elementwise loops: how they are called and how they are defined. */
#ifndef COREFW_ELEMENTWISE_H
#define COREFW_ELEMENTWISE_H

#include "core/array.h"
#include "kernels.h"

typedef uint8_t bool8; /* an element of a bool array */

/* Rows of the table of loops, one array per file of loops; the last row has no op. */
extern const struct elementwise_loop loops_f32[], loops_f64[], loops_integers[], loops_choose[], loops_bits[];

/* Whether a loop takes an operand of a half type as floats: a number, or a tensor that it does not take as it is stored. */
static inline bool widens(const struct elementwise_loop *loop, bool number) {
    return !loop->as_stored && (number || !loop->halves);
}

/* The loop over n elements of each operand, one after the other. */
static inline void run_span(const struct elementwise_loop *loop, intptr_t n, char *const *in, char *out) {
    if (!loop->numpy) {
        (loop->halves ? loop->halves : loop->span)(n, in, out);
        return;
    }
    char *args[6];
    intptr_t steps[6];
    for (int i = 0; i < loop->tensors; i++) args[i] = in[i], steps[i] = (intptr_t)size_of((enum dtype)loop->types[i]);
    args[loop->tensors] = out, steps[loop->tensors] = (intptr_t)size_of((enum dtype)loop->types[5]);
    loop->numpy(args, &n, steps, loop->data);
}

/* No iteration of the next loop depends on another one, though results may replace inputs. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

#endif
