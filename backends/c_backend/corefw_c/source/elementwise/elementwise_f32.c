/* Elementwise loops of float, which serve the half types too. */
#define LOOPS_f32
#include "elementwise/elementwise_spans.h"

const struct elementwise_loop loops_f32[] = {
#include "elementwise/elementwise_loops.inc"
    {NULL, 0, 0, 0, {0}, NULL, NULL, NULL, 0, NULL, NULL},
};
