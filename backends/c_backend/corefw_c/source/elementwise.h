/* Elementwise loops: how they are called and how they are defined. */
#ifndef COREFW_ELEMENTWISE_H
#define COREFW_ELEMENTWISE_H

#include "array.h"
#include "kernels.h"

typedef uint8_t truth; /* an element of a bool array */

/* Rows of the table of loops, one array per file of loops; the last row has no op. */
extern const struct elementwise_loop loops_f32[], loops_f64[], loops_integers[], loops_choose[];

/* Elements of the half types, widened to float and narrowed to the nearest, ties to even. */
void widen_float16(ssize_t n, const uint16_t *halves, float *out);
void widen_bfloat16(ssize_t n, const uint16_t *halves, float *out);
void narrow_float16(ssize_t n, const float *x, uint16_t *halves);
void narrow_bfloat16(ssize_t n, const float *x, uint16_t *halves);

/* No iteration of the next loop depends on another one, though results may replace inputs. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

#endif
