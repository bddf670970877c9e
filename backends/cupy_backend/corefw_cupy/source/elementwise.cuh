// What generated elementwise functions are made of (elementwise.py): reading, writing, and walking over strided operands.

#include "types.cuh"
#include "faults.cuh"
#include "mathematics.cuh"

typedef Compute<T>::type A;

#ifndef SIZE // of offsets
#define SIZE int32
#endif

#define MAX_DIMS 16
#define MAX_OPERANDS 5

// The dimensions that all operands share, outermost first, and the distance between neighbours in elements.
template <class Size> struct Layout {
    int64 n;
    int64 dims;
    Size sizes[MAX_DIMS];
    Size strides[MAX_OPERANDS][MAX_DIMS];
};

// Where element `i` lies in each of the operands.
template <int operands, class Size> __device__ void locate(const Layout<Size> &layout, int64 i, Size (&offsets)[operands])
{
    for (int k = 0; k < operands; ++k)
        offsets[k] = 0;
    typename Unsigned<Size>::type rest = i;
    for (int dim = layout.dims - 1; dim >= 0; --dim) {
        typename Unsigned<Size>::type outer = rest / layout.sizes[dim];
        Size along = rest - outer * layout.sizes[dim];
        rest = outer;
        for (int k = 0; k < operands; ++k)
            offsets[k] += along * layout.strides[k][dim];
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
