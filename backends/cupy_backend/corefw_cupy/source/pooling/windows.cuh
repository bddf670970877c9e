// Windows over up to three spatial dimensions: they slide, or divide their dimension evenly.

#include "core/division.cuh"

#define SPATIAL 3

// The windows of one dimension. Those that divide it evenly have no extent.
template <class Size> struct Axis {
    Divisor<Size> size, count, stride;
    Size extent, padding, dilation;
};

template <class Size> struct Span {
    Size begin, end;
};

// Where window `i` begins, also where that is before the first element, and ends.
template <class Size> __device__ Span<Size> window(const Axis<Size> &axis, Size i)
{
    Size size = axis.size.value, count = axis.count.value;
    if (axis.extent) {
        Size begin = i * axis.stride.value - axis.padding;
        return {begin, begin + axis.dilation * (axis.extent - 1) + 1};
    }
    if (count == 1)
        return {0, size};
    return {axis.count.quotient(i * size), axis.count.quotient((i + 1) * size + count - 1)};
}

// The part of a window that is inside; the first element is one that the window takes.
template <class Size> __device__ Span<Size> inside(const Axis<Size> &axis, Span<Size> window)
{
    if (window.begin < 0)
        window.begin += (axis.dilation - 1 - window.begin) / axis.dilation * axis.dilation;
    window.end = min(window.end, axis.size.value);
    return window;
}

// The windows without dilation that element `j` lies in, from the first to the one behind the last.
template <class Size> __device__ Span<Size> windows_around(const Axis<Size> &axis, Size j)
{
    Size size = axis.size.value, count = axis.count.value;
    if (axis.extent) {
        Size padded = j + axis.padding, before = padded - axis.extent + axis.stride.value;
        Size last = axis.stride.quotient(padded) + 1;
        return {before < 0 ? 0 : axis.stride.quotient(before), min(last, count)};
    }
    if (count == 1)
        return {0, 1};
    return {axis.size.quotient(j * count), axis.size.quotient((j + 1) * count + size - 1)};
}
