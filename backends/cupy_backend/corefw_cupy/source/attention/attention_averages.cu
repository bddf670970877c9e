// What the gradients of attention need first: for each query the sum of its gradient times its output, which is the
// average of the gradients of its weights.

#include "attention/attention.cuh"

// A warp for each query.
extern "C" __global__ void attention_averages(const T *gradient, const T *output, Attention of, A *averages)
{
    int64 query = (int64)blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP, head = query / of.queries;
    if (query >= of.heads * of.queries)
        return;
    const T *g = matrix_of(of, of.gradient, gradient, head) + query % of.queries * of.gradient.row;
    const T *o = matrix_of(of, of.output, output, head) + query % of.queries * of.output.row;
    A sum = 0;
    for (int64 k = threadIdx.x % WARP; k < of.value_width; k += WARP)
        sum += A(g[k]) * A(o[k]);
    sum = combine_warp<Add>(sum);
    if (threadIdx.x % WARP == 0)
        averages[query] = sum;
}
