// What is launched of either way to multiply: the convolution, and the gradient of its kernel.

extern "C" __global__ void __launch_bounds__(THREADS, 2)
    convolve(const T *image, const T *kernel, const T *bias, T *out, Number *partial, int64 total, Convolution c)
{
    multiply<false, TILE>(image, kernel, bias, out, partial, total, c);
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
    weight_gradient(const T *image, const T *gradient, T *out, Number *partial, int64 total, Convolution c)
{
    multiply<true, TILE>(image, gradient, nullptr, out, partial, total, c);
}
