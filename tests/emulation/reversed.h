// Blocks, and the threads of each, in the order opposite to that of emulator.h: what relies on either order shows.

#pragma once

namespace emulator {

inline bool launch_reversed(dim3 grid, dim3 block, void (*function)(void *), void *arguments)
{
    body = function;
    argument = arguments;
    gridDim = grid;
    blockDim = block;
    for (size_t index = size_t(grid.x) * grid.y * grid.z; index--;) {
        blockIdx = {unsigned(index % grid.x), unsigned(index / grid.x % grid.y), unsigned(index / grid.x / grid.y)};
        if (!run_block(block.x * block.y * block.z, index % 2 == 0))
            return false;
    }
    return true;
}

} // namespace emulator

#define launch launch_reversed
