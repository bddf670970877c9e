// Seed and offset of a generator, for a replay of a graph whose kernels read them (`Part` in philox.cuh).

#include "core/types.cuh"

extern "C" __global__ void write_generator_state(uint64 *state, uint64 seed, uint64 offset)
{
    state[0] = seed;
    state[1] = offset;
}
