// The gradient of the kernels of convolutions whose groups are too small to be products of matrices.

#include "convolution.cuh"
#include "block.cuh"

typedef Sum<T>::type Number;

// The gradient of one element of the kernel in each block, from its range of the places.
extern "C" __global__ void weigh_directly(const T *image, const T *gradient, T *out, Number *partial, int64 total,
                                          Convolution c)
{
    uint32 taps = count_taps(c), first, last;
    uint32 k = blockIdx.x % taps;
    int64 row = blockIdx.x / taps % c.rows, group = blockIdx.x / taps / c.rows;
    Part part = tap(c, k);
    image += group * c.image_group;
    gradient += c.place_offset + group * c.place_group + row * c.place_row;
    own_range(count_places(c), 1, first, last);
    Number sum = 0;
    for (uint32 i = first + threadIdx.x; i < last; i += blockDim.x) {
        Part at = place(c, i);
        sum += (Number)gradient[at.other] * (Number)seen(image, c, at, part);
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
