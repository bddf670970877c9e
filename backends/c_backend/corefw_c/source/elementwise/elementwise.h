/* Elementwise loops: how they are called and how they are defined. */
#ifndef COREFW_ELEMENTWISE_H
#define COREFW_ELEMENTWISE_H

#include "core/array.h"
#include "kernels.h"

typedef uint8_t bool8; /* an element of a bool array */

/* Rows of the table of loops, one array per file of loops; the last row has no op. */
extern const struct elementwise_loop loops_f32[], loops_f64[], loops_integers[], loops_choose[];

/* Whether a loop takes and gives half types as they are stored, rather than as floats; of numbers those that are chosen. */
static inline bool takes_halves(const struct elementwise_loop *loop) { return loop->halves || loop->types[0] == BOOL; }

static inline void run_span(const struct elementwise_loop *loop, intptr_t n, char *const *in, char *out) {
    (loop->halves ? loop->halves : loop->span)(n, in, out);
}

/* No iteration of the next loop depends on another one, though results may replace inputs. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

#endif
