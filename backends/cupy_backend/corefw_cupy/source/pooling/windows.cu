// The windows of images as columns of matrices.

#include "convolution/convolution.cuh"

// columns[sample, channel and tap, place]; the images may have any strides.
extern "C" __global__ void windows_to_columns(const T *image, T *columns, Convolution c)
{
    int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    int64 places = c.axes[0].places * c.axes[1].places * c.axes[2].places, taps = count_taps(c);
    if (i >= c.samples * taps * places)
        return;
    columns[i] = seen(image, c, place(c, i / places / taps * places + i % places), tap(c, i / places % taps));
}
