/* Elementwise loops of integers and bool. */
#define LOOPS_i8
#define LOOPS_i16
#define LOOPS_i32
#define LOOPS_i64
#define LOOPS_u8
#define LOOPS_u16
#define LOOPS_u32
#define LOOPS_u64
#define LOOPS_bool8
#include "elementwise/elementwise_spans.h"

const struct elementwise_loop loops_integers[] = {
#include "elementwise/elementwise_loops.inc"
    {NULL, 0, 0, 0, {0}, NULL, NULL, NULL, 0, NULL, NULL},
};
