// Where runs of equal lines begin, in the order in which the lines are visited.

#include "core/types.cuh"

// Without `order`, the lines are visited as they lie.
extern "C" __global__ void mark_runs(const T *lines, const int64 *order, int64 n, int64 width, bool *begins)
{
    int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    bool differs = i == 0;
    int64 own = order ? order[i] : i, last = differs ? own : order ? order[i - 1] : i - 1;
    for (int64 k = 0; k < width && !differs; ++k)
        differs = lines[own * width + k] != lines[last * width + k];
    begins[i] = differs;
}
