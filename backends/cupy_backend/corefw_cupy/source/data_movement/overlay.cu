// Columns of matrices added up where they lie, as windows, in images.

#include "convolution/convolution.cuh"

typedef Sum<T>::type Number;

// The dense images that have such columns, in row-major order, as windows: each element is the sum of where it is seen,
// and the bias of its channel.
extern "C" __global__ void columns_to_images(const T *columns, const T *bias, T *images, Convolution c)
{
    int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    const Axis &x = c.axes[0], &y = c.axes[1], &z = c.axes[2];
    if (i >= c.samples * c.channels * x.size * y.size * z.size)
        return;
    int64 at[AXES] = {i / z.size / y.size % x.size, i / z.size % y.size, i % z.size};
    columns += i / z.size / y.size / x.size * x.taps * y.taps * z.taps * x.places * y.places * z.places;
    Number sum = bias ? (Number)bias[i / z.size / y.size / x.size % c.channels] : Number(0);
    auto places = [&](int axis, int64 tap, int64 &place) { // whether the tap sees the element, and from where
        const Axis &own = c.axes[axis];
        int64 distance = at[axis] - own.first - tap * own.tap_step;
        place = distance / own.place_step;
        return distance >= 0 && distance % own.place_step == 0 && place < own.places;
    };
    int64 px, py, pz;
    for (int64 tx = 0; tx < x.taps; ++tx)
        if (places(0, tx, px))
            for (int64 ty = 0; ty < y.taps; ++ty)
                if (places(1, ty, py))
                    for (int64 tz = 0; tz < z.taps; ++tz)
                        if (places(2, tz, pz)) {
                            int64 tap = (tx * y.taps + ty) * z.taps + tz;
                            int64 place = (px * y.places + py) * z.places + pz;
                            sum = sum + (Number)columns[tap * x.places * y.places * z.places + place];
                        }
    images[i] = (T)sum;
}
