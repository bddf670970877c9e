// The gradient of the kernels of convolutions whose groups are too small to be products of matrices.

#include "convolution/convolution.cuh"
#include "core/block.cuh"

typedef Sum<T>::type Number;

// The gradient of one element of the kernel in each block, from its range of the places.
extern "C" __global__ void weight_gradient_directly(const T *image, const T *gradient, T *out, Number *partial, int64 total,
                                          Convolution c)
{
    uint32 taps = count_taps(c), first, last;
    uint32 k = blockIdx.x % taps;
    int64 row = blockIdx.x / taps % c.rows, group = blockIdx.x / taps / c.rows;
    Part part = tap(c, k);
    image += group * c.image_group;
    gradient += c.place_offset + group * c.place_group + row * c.place_row;
    const Axis &z = c.axes[2];
    own_range(c.samples * c.axes[0].places * c.axes[1].places, 1, first, last);
    Number sum = 0;
    for (uint32 line = first + threadIdx.x / WARP; line < last; line += blockDim.x / WARP) { // neighbours in an image
        Part at = place(c, line * (uint32)z.places);
        bool inside = true;
        for (int i = 0; i < AXES - 1; ++i)
            inside &= (uint32)(at.at[i] + part.at[i]) < (uint32)c.axes[i].size;
        if (!inside)
            continue;
        const T *images = image + at.image + part.image, *gradients = gradient + at.other;
        for (int32 i = threadIdx.x % WARP; i < z.places; i += WARP) {
            int32 position = at.at[2] + part.at[2] + i * (int32)z.place_step;
            if ((uint32)position < (uint32)z.size)
                sum += (Number)gradients[i * z.place_stride] * (Number)images[i * z.place_step * z.stride];
        }
    }
    sum = combine_block<Add>(sum, Number(0));
    int64 to = c.tap_offset + group * c.tap_group + row * c.tap_row + part.other;
    if (threadIdx.x == 0) {
        if (partial)
            partial[blockIdx.y * total + to] = sum;
        else
            out[to] = (T)sum;
    }
}
