// Many arrays joined by one launch. The result has rows, of which each array gives a stretch; T is the widest unit of
// bytes that all of them divide into.

#include "core/types.cuh"

#define MOST_PARTS 32 // as in joining.py
#define UNITS 4       // that a thread copies

struct Parts {
    int64 count;
    int64 first_blocks[MOST_PARTS]; // of the grid, that copy a part
    int64 starts[MOST_PARTS];       // in a row
    int64 widths[MOST_PARTS];
};

struct Sources {
    const T *of[MOST_PARTS];
};

extern "C" __global__ void join(Sources sources, T *out, Parts parts, int64 rows, int64 row)
{
    int part = 0;
    while (part + 1 < parts.count && blockIdx.x >= parts.first_blocks[part + 1])
        ++part;
    const T *source = sources.of[part];
    int64 width = parts.widths[part], n = rows * width;
    int64 first = (blockIdx.x - parts.first_blocks[part]) * blockDim.x * UNITS + threadIdx.x;
    T *start = out + parts.starts[part];
    for (int k = 0; k < UNITS; ++k) {
        int64 i = first + k * (int64)blockDim.x;
        if (i < n) {
            int64 at = n >> 32 ? i / width : (uint32)i / (uint32)width;
            start[at * row + i - at * width] = source[i];
        }
    }
}
