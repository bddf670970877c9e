// The negative log-likelihood of classes, and the sums of the weights that means are taken with.

#include "loss/classes.cuh"
#include "reduction/loss_sum.cuh"

// Losses are written one by one, or (losses = 0) summed.
extern "C" __global__ void class_nll(
    const T *__restrict__ input, T *losses, const int64 *__restrict__ target, const T *__restrict__ weight,
    Total *of_blocks, T *result, int64 samples, int64 classes, int64 inner, int64 ignored, bool mean, int64 *device_asserts,
    int64 kind)
{
    Total total = {0, 0};
    int64 step = (int64)gridDim.x * blockDim.x;
    for (int64 sample = (int64)blockIdx.x * blockDim.x + threadIdx.x; sample < samples; sample += step) {
        int64 found = class_of(target, sample, classes, ignored, device_asserts, kind);
        A factor = weight_of(weight, found), loss = 0;
        if (factor != 0)
            loss = -A(input[(sample / inner * classes + found) * inner + sample % inner]) * factor;
        if (losses)
            losses[sample] = loss;
        total.loss += loss;
        total.weight += factor;
    }
    if (!losses)
        sum_losses(total, of_blocks, result, mean);
}

// What each block finds of the sum of all targets' weights. Classes that there are not are reported with the gradient.
extern "C" __global__ void class_weights(
    const int64 *__restrict__ target, const T *__restrict__ weight, double *of_blocks, int64 samples, int64 classes,
    int64 ignored)
{
    int64 first = (int64)blockIdx.x * blockDim.x + threadIdx.x, step = (int64)gridDim.x * blockDim.x;
    double sum = combine_block<Add>(sum_weights(target, weight, first, step, samples, classes, ignored), 0.0);
    if (threadIdx.x == 0)
        of_blocks[blockIdx.x] = sum;
}
