// Where values belong in sorted rows, and whether they are there; NaN is the largest. Complex numbers are ordered by
// their real parts, then by their imaginary ones.

#include "core/types.cuh"
#include "core/complex.cuh"

template <class Number> __device__ bool precedes(Number a, Number b)
{
    return a < b || (b != b && a == a);
}
template <class Real> __device__ bool precedes(Complex<Real> a, Complex<Real> b)
{
    return precedes(a.re, b.re) || (!precedes(b.re, a.re) && precedes(a.im, b.im));
}

// How many elements of a sorted row come before a value, or with `right` before or with it.
template <class Number> __device__ int64 place_of(const Number *row, int64 n, Number value, bool right)
{
    int64 low = 0, high = n;
    while (low < high) {
        int64 middle = (low + high) / 2;
        Number found = row[middle];
        if (right ? !precedes(value, found) : precedes(found, value))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Each row is for `shared` values.
extern "C" __global__ void search_rows(const T *rows, int64 length, const T *values, int64 n, int64 shared, bool right,
                                       int64 *places)
{
    int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        places[i] = place_of(rows + i / shared * length, length, values[i], right);
}

extern "C" __global__ void find_members(const T *row, int64 length, const T *values, int64 n, bool invert, bool *found)
{
    int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    T value = values[i];
    int64 place = place_of(row, length, value, false);
    found[i] = (place < length && row[place] == value) != invert;
}
