// The cross entropy of classes and the softmax of scores, in one pass over the scores; beside the losses the greatest
// score of each sample, and from `totals` on the sum of its exponentials relative to that.
//
// Losses are written one by one, or (losses = 0) summed.

#include "core/exponentials.cuh"
#include "loss/classes.cuh"
#include "reduction/loss_sum.cuh"

// The loss of a sample whose exponentials were summed, and whose scores are `step` elements apart.
__device__ inline void record(Exponentials sum, const T *scores, int64 step, int64 sample, int64 found, T *losses,
                              A *greatest, A *totals, Total &total)
{
    A loss = found == UNCOUNTED ? A(0) : log(sum.total) - (A(scores[found * step]) - sum.greatest);
    greatest[sample] = sum.greatest;
    totals[sample] = sum.total;
    if (losses)
        losses[sample] = loss;
    total.loss += loss;
    total.weight += found != UNCOUNTED;
}

extern "C" __global__ void __launch_bounds__(MOST_THREADS) cross_entropy_rows(
    const T *__restrict__ input, T *losses, const int64 *__restrict__ target, A *normalizer, Total *of_blocks,
    T *result, int64 samples, int64 classes, int64 lanes, int64 ignored, bool mean, int64 *device_asserts, int64 kind)
{
    bool packed = packed_rows(classes, input);
    Lane lane = lane_of(lanes);
    int rows = blockDim.x / lane.lanes;
    Total total = {0, 0};
    for (int64 first = (int64)blockIdx.x * rows; first < samples; first += (int64)gridDim.x * rows) {
        int64 sample = first + threadIdx.x / lane.lanes;
        bool there = sample < samples;
        const T *scores = input + sample * classes;
        Exponentials sum = scan(scores, 0, there ? classes : 0, lane.at, lane.lanes, packed);
        sum = combined(sum, lane.lanes);
        if (there && lane.at == 0) {
            int64 found = class_of(target, sample, classes, ignored, device_asserts, kind);
            record(sum, scores, 1, sample, found, losses, normalizer, normalizer + samples, total);
        }
    }
    if (!losses)
        sum_losses(total, of_blocks, result, mean);
}

// The classes are not the last dimension: neighbouring threads work on neighbouring samples, and several on each.
extern "C" __global__ void __launch_bounds__(MOST_THREADS) cross_entropy_columns(
    const T *__restrict__ input, T *losses, const int64 *__restrict__ target, A *normalizer, Total *of_blocks,
    T *result, int64 outer, int64 classes, int64 inner, int64 width, int64 tiles, int64 ignored, bool mean,
    int64 *device_asserts, int64 kind)
{
    int lane = threadIdx.x / width, lanes = blockDim.x / width;
    Total total = {0, 0};
    for (int64 tile = blockIdx.x; tile < outer * tiles; tile += gridDim.x) {
        int64 at = tile % tiles * width + threadIdx.x % width;
        bool there = at < inner;
        const T *scores = input + tile / tiles * classes * inner + at;
        Exponentials sum = no_exponentials();
        for (int64 one = lane; there && one < classes; one += lanes) {
            A exponent[] = {scores[one * inner]};
            add(sum, exponent);
        }
        sum = combined_column(sum, width);
        if (there && lane == 0) {
            int64 sample = tile / tiles * inner + at, found = class_of(target, sample, classes, ignored, device_asserts, kind);
            record(sum, scores, inner, sample, found, losses, normalizer, normalizer + outer * inner, total);
        }
    }
    if (!losses)
        sum_losses(total, of_blocks, result, mean);
}
