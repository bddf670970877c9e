/* Elementwise loops of double. */
#define LOOPS_f64
#include "elementwise/elementwise_spans.h"

const struct elementwise_loop loops_f64[] = {
#include "elementwise/elementwise_loops.inc"
    {NULL, 0, 0, 0, {0}, NULL, NULL, NULL, 0, NULL, NULL},
};
