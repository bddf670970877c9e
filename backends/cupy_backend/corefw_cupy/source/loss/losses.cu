// Sums of losses: of squared differences, and of what blocks of other kernels have summed.

#include "core/rows.cuh"
#include "reduction/loss_sum.cuh"

extern "C" __global__ void squared_error_sum(
    const T *__restrict__ input, const T *__restrict__ target, Total *of_blocks, T *result, int64 n, bool mean)
{
    Total total = {0, blockIdx.x || threadIdx.x ? 0.0 : (double)n};
    bool packed = packed_rows(n, input, target);
    int64 first = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    walk(0, n, first, (int64)gridDim.x * blockDim.x, packed, [&](auto several, int64 at) {
        const int count = decltype(several)::count;
        A inputs[count], targets[count], sum = 0;
        read<count>(input + at, inputs);
        read<count>(target + at, targets);
        for (int k = 0; k < count; ++k)
            sum += (inputs[k] - targets[k]) * (inputs[k] - targets[k]);
        total.loss += sum;
    });
    sum_losses(total, of_blocks, result, mean);
}

extern "C" __global__ void total_loss(const Total *__restrict__ of_blocks, T *result, int64 blocks, bool mean)
{
    Total total = {0, 0};
    for (int64 block = threadIdx.x; block < blocks; block += blockDim.x) {
        total.loss += of_blocks[block].loss;
        total.weight += of_blocks[block].weight;
    }
    sum_losses(total, 0, result, mean);
}
