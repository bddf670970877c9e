// What generated elementwise functions are made of (elementwise.py): reading, writing, and walking over strided operands.

#include "core/types.cuh"
#include "core/device_asserts.cuh"
#include "core/mathematics.cuh"
#include "core/division.cuh"

typedef Compute<T>::type A;

#define MAX_DIMS 16
#ifndef MAX_OPERANDS // of a fusion all that it has
#define MAX_OPERANDS 5
#endif

// The dimensions that all operands share, outermost first, and the distance between neighbours in elements; in packs
// for the innermost one, if packs are walked over.
template <class Size> struct Layout {
    int64 n;
    int64 dims;
    int64 singles; // bits of operands of which one element stands for a pack
    Divisor<Size> sizes[MAX_DIMS];
    Size strides[MAX_OPERANDS][MAX_DIMS];
};

// Where each of `count` positions that are `step` apart lies in each of the operands; nowhere for those beyond the end.
template <int count, int operands, class Size>
__device__ void locate(const Layout<Size> &layout, int64 first, int64 step, Size (&offsets)[count][operands])
{
    Size rest[count];
#pragma unroll
    for (int i = 0; i < count; ++i) {
        rest[i] = first + i * step;
        for (int k = 0; k < operands; ++k)
            offsets[i][k] = 0;
    }
    for (int dim = layout.dims - 1; dim >= 0; --dim)
#pragma unroll
        for (int i = 0; i < count; ++i) {
            Size along = take_innermost(rest[i], layout.sizes[dim]);
            for (int k = 0; k < operands; ++k)
                offsets[i][k] += along * layout.strides[k][dim];
        }
}

// Elements that one thread computes: as many as 16 bytes hold of the widest operand.
template <class... Elements> struct Width {
    static const int value = 16;
};
template <class First, class... Others> struct Width<First, Others...> {
    static const int others = Width<Others...>::value, own = 16 / sizeof(First);
    static const int value = own < others ? own : others;
};

// Elements that a thread of a strided walk computes.
#define MOST_TOGETHER 4

template <int n> struct Several {
    static const int count = n;
};

template <class Element, int width> struct alignas(sizeof(Element) * width) Pack {
    Element values[width];
};

template <int width, class Element> __device__ bool aligned(const Element *pointer)
{
    return (uint64)pointer % sizeof(Pack<Element, width>) == 0;
}

// Read `width` elements from `first` on, of `n` that there are; a `single` one stands for all.
template <int width, class Element>
__device__ void fetch(const Element *from, int64 first, int64 n, bool single, bool whole, Element (&values)[width])
{
    if (single) {
        Element value = *from;
        for (int k = 0; k < width; ++k)
            values[k] = value;
    } else if (whole) {
        Pack<Element, width> pack = *(const Pack<Element, width> *)(from + first);
        for (int k = 0; k < width; ++k)
            values[k] = pack.values[k];
    } else {
        for (int k = 0; k < width; ++k)
            if (first + k < n)
                values[k] = from[first + k];
    }
}

template <int width, class Element>
__device__ void deposit(Element *to, int64 first, int64 n, bool whole, const Element (&values)[width])
{
    if (whole) {
        Pack<Element, width> pack;
        for (int k = 0; k < width; ++k)
            pack.values[k] = values[k];
        *(Pack<Element, width> *)(to + first) = pack;
    } else {
        for (int k = 0; k < width; ++k)
            if (first + k < n)
                to[first + k] = values[k];
    }
}
