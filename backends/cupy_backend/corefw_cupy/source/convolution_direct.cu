// Convolutions whose groups are too small to be products of matrices, depthwise ones above all; and the last step of
// convolutions whose sums were split over blocks.

#include "convolution.cuh"

typedef Sum<T>::type Number;

// One result in each thread: neighbours in a warp are neighbours in an image.
extern "C" __global__ void convolve_directly(const T *image, const T *kernel, const T *bias, T *out, Convolution c)
{
    int64 places = c.axes[0].places * c.axes[1].places * c.axes[2].places;
    int64 index = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= c.samples * c.groups * c.rows * places)
        return;
    int64 of_image = index % places, image_index = index / places;
    int64 row = image_index % c.rows, group = image_index / c.rows % c.groups, sample = image_index / c.rows / c.groups;
    Part at = place(c, sample * places + of_image);
    image += group * c.image_group;
    kernel += c.tap_offset + group * c.tap_group + row * c.tap_row;
    Number sum = bias ? (Number)bias[group * c.rows + row] : Number(0);
    uint32 taps = count_taps(c);
    for (uint32 k = 0; k < taps; ++k) {
        Part part = tap(c, k);
        sum = sum + (Number)kernel[part.other] * (Number)seen(image, c, at, part);
    }
    out[c.place_offset + group * c.place_group + row * c.place_row + at.other] = (T)sum;
}

// The sum of what the blocks of a split sum left, in order, and the bias of each channel.
extern "C" __global__ void join_splits(const Number *partial, const T *bias, T *out, int64 n, int64 splits,
                                       int64 channels, int64 size)
{
    int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    Number sum = bias ? (Number)bias[i / size % channels] : Number(0);
    for (int64 split = 0; split < splits; ++split)
        sum = sum + partial[split * n + i];
    out[i] = (T)sum;
}
