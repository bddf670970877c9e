// How blocks follow whole recurrences of equally long sequences.

#include "recurrent/recurrent.cuh"

const int SEQUENCES = 4, SPLITS = SEQUENCES; // of a product's sum; thread (x, y) computes unit x of part y,
const int MOST_UNITS = 128;                  // then unit x of sequence y of the block

struct Sequences {
    int64 steps, batch, hidden, reverse;
};

// A number for each sequence of a block.
struct alignas(sizeof(A) * SEQUENCES) Group {
    A of[SEQUENCES];
};

// The packed row of the first sequence at the step that is visited as number `step`.
__device__ inline int64 row_of(const Sequences &of, int64 step)
{
    return (of.reverse ? of.steps - 1 - step : step) * of.batch;
}
