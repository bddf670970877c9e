/* Elementwise loops, as NumPy's ufuncs call them. */
#include "kernels.h"

static const struct elementwise_loop loops[] = {{NULL, 0, {0}, 0, 0}};

const struct elementwise_loop *elementwise_loops(void) { return loops; }
