// Numbers at equal distances, and the identity matrix. A thread writes the 16 bytes at its place.

#include "elementwise/elementwise.cuh"

#define WIDTH (16 / (int)sizeof(T))

__device__ inline int64 first_of_thread()
{
    return ((int64)blockIdx.x * blockDim.x + threadIdx.x) * WIDTH;
}

__device__ inline void write(T *out, int64 first, int64 n, const T (&values)[WIDTH])
{
    if (first < n)
        deposit(out, first, n, first + WIDTH <= n && aligned<WIDTH>(out), values);
}

extern "C" __global__ void arange_integers(T *out, int64 n, int64 start, int64 step)
{
    int64 first = first_of_thread();
    T values[WIDTH];
    for (int k = 0; k < WIDTH; ++k)
        values[k] = T((uint64)start + (uint64)step * (uint64)(first + k)); // wraps as a narrower type does
    write(out, first, n, values);
}

extern "C" __global__ void arange_numbers(T *out, int64 n, float64 start, float64 step)
{
    int64 first = first_of_thread();
    T values[WIDTH];
    for (int k = 0; k < WIDTH; ++k)
        values[k] = converted<T>(start + step * (first + k));
    write(out, first, n, values);
}

// From both ends, so that both are exact and the result is symmetric.
template <class Number> __device__ void write_between(T *out, int64 n, Number start, Number end, Number step)
{
    int64 first = first_of_thread();
    T values[WIDTH];
    for (int k = 0; k < WIDTH; ++k) {
        int64 i = first + k;
        values[k] = converted<T>(i < n / 2 ? start + step * Number(i) : end - step * Number(n - 1 - i));
    }
    write(out, first, n, values);
}

extern "C" __global__ void linspace(T *out, int64 n, float64 start, float64 end, float64 step)
{
    write_between(out, n, start, end, step);
}

extern "C" __global__ void linspace_complex(
    T *out, int64 n, Complex<float64> start, Complex<float64> end, Complex<float64> step)
{
    write_between(out, n, start, end, step);
}

extern "C" __global__ void eye(T *out, int64 n, int64 columns)
{
    int64 first = first_of_thread(), row = first / columns, column = first - row * columns;
    T values[WIDTH];
    for (int k = 0; k < WIDTH; ++k) {
        values[k] = T(row == column);
        if (++column == columns) {
            column = 0;
            ++row;
        }
    }
    write(out, first, n, values);
}
