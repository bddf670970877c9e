// Convolutions whose groups are too small to be products of matrices, depthwise ones above all.

#include "convolution/convolution.cuh"

typedef Sum<T>::type Number;

// One place in each thread, neighbours in a warp are neighbours in an image; the grid's y-coordinate is the channel.
extern "C" __global__ void convolve_directly(const T *image, const T *kernel, const T *bias, T *out, Convolution c)
{
    int64 index = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= count_places(c))
        return;
    Part at = place(c, index);
    const Axis &x = c.axes[0], &y = c.axes[1], &z = c.axes[2];
    for (int64 row = blockIdx.y; row < c.groups * c.rows; row += gridDim.y) {
        int64 group = row / c.rows, in_group = row - group * c.rows;
        const T *images = image + group * c.image_group + at.image;
        const T *kernels = kernel + c.tap_offset + group * c.tap_group + in_group * c.tap_row;
        Number sum = bias ? (Number)bias[row] : Number(0);
        for (int64 channel = 0; channel < c.channels; ++channel)
            for (int32 i = 0, px = at.at[0]; i < x.taps; ++i, px += x.tap_step) {
                if ((uint32)px >= (uint32)x.size)
                    continue;
                for (int32 j = 0, py = at.at[1]; j < y.taps; ++j, py += y.tap_step) {
                    if ((uint32)py >= (uint32)y.size)
                        continue;
                    const T *pixel = images + channel * c.image_channel + i * x.tap_step * x.stride
                                     + j * y.tap_step * y.stride;
                    const T *tap = kernels + channel * c.tap_channel + i * x.tap_stride + j * y.tap_stride;
                    for (int32 k = 0, pz = at.at[2]; k < z.taps; ++k, pz += z.tap_step)
                        if ((uint32)pz < (uint32)z.size)
                            sum = sum + (Number)tap[k * z.tap_stride] * (Number)pixel[k * z.tap_step * z.stride];
                }
            }
        out[c.place_offset + group * c.place_group + in_group * c.place_row + at.other] = (T)sum;
    }
}
