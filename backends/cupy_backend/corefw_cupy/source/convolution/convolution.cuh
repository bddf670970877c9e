// What a convolution multiplies with what: images, kernels and results of any strides, in up to three dimensions.

#include "core/types.cuh"
#include "core/complex.cuh"

#define AXES 3
#define OUTSIDE (-(1 << 30)) // a position that no image has, whatever is added to it

// One spatial dimension: an element of the kernel (a tap) at a place of the result sees the position
// place * place_step + tap * tap_step + first of the image.
struct Axis {
    int64 places, taps;
    int64 place_step, tap_step, first;
    int64 size, stride;              // of the image
    int64 place_stride, tap_stride; // of the result and of the kernel
};

// Strides of channels are from one channel of a group to the next; `rows` are the result's channels in a group.
struct Convolution {
    int64 samples, groups, rows, channels;
    int64 image_sample, image_group, image_channel;
    int64 place_offset, place_sample, place_group, place_row;
    int64 tap_offset, tap_group, tap_row, tap_channel;
    Axis axes[AXES];
};

// A place in a sample, or a tap of a channel: what it adds to the offset of an element in the image, to the offset in
// the result or the kernel, and to the position in the image.
struct Part {
    int64 image, other;
    int32 at[AXES];
};

__device__ inline Part nowhere()
{
    return {0, 0, {OUTSIDE, 0, 0}};
}

__device__ inline Part place(const Convolution &c, uint32 index)
{
    Part part = {0, 0, {}};
    for (int i = AXES - 1; i >= 0; --i) {
        const Axis &axis = c.axes[i];
        uint32 outer = index / (uint32)axis.places, along = index - outer * (uint32)axis.places;
        index = outer;
        part.at[i] = along * (int32)axis.place_step + (int32)axis.first;
        part.image += part.at[i] * axis.stride;
        part.other += along * axis.place_stride;
    }
    part.image += index * c.image_sample;
    part.other += index * c.place_sample;
    return part;
}

__device__ inline Part tap(const Convolution &c, uint32 index)
{
    Part part = {0, 0, {}};
    for (int i = AXES - 1; i >= 0; --i) {
        const Axis &axis = c.axes[i];
        uint32 outer = index / (uint32)axis.taps, along = index - outer * (uint32)axis.taps;
        index = outer;
        part.at[i] = (int32)along * (int32)axis.tap_step;
        part.image += part.at[i] * axis.stride;
        part.other += along * axis.tap_stride;
    }
    part.image += index * c.image_channel;
    part.other += index * c.tap_channel;
    return part;
}

__device__ inline uint32 count_places(const Convolution &c)
{
    return c.samples * c.axes[0].places * c.axes[1].places * c.axes[2].places;
}

__device__ inline uint32 count_taps(const Convolution &c)
{
    return c.channels * c.axes[0].taps * c.axes[1].taps * c.axes[2].taps;
}

// The element of an image that a tap sees from a place; zeros lie around.
__device__ inline T seen(const T *image, const Convolution &c, const Part &a, const Part &b)
{
    T zero = {};
    for (int i = 0; i < AXES; ++i)
        if ((uint32)(a.at[i] + b.at[i]) >= (uint32)c.axes[i].size)
            return zero;
    return image[a.image + b.image];
}

// The part of `n` that the block's y-coordinate stands for, when a sum is split over the grid: multiples of `step`.
__device__ inline void own_range(uint32 n, uint32 step, uint32 &first, uint32 &last)
{
    uint32 steps = (n + step - 1) / step, each = (steps + gridDim.y - 1) / gridDim.y * step;
    first = min((uint64)blockIdx.y * each, (uint64)n);
    last = min((uint64)first + each, (uint64)n);
}
