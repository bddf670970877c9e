// Sums, products and extrema in place, by threads that may meet at an element.

#include "core/types.cuh"
#include "core/complex.cuh"

struct Sums {
    template <class Number> __device__ static Number of(Number a, Number b) { return a + b; }
};
struct Products {
    template <class Number> __device__ static Number of(Number a, Number b) { return a * b; }
};
// The greater one and the lesser one; NaN wins.
struct Maxima {
    template <class Number> __device__ static Number of(Number a, Number b) { return a > b || a != a ? a : b; }
};
struct Minima {
    template <class Number> __device__ static Number of(Number a, Number b) { return a < b || a != a ? a : b; }
};

// The words of memory that can be exchanged at once: an element, or the one that it is a part of.
template <int size> struct Word {
    typedef uint32 type;
};
template <> struct Word<8> {
    typedef uint64 type;
};

// An element combined with a value, whatever other threads do.
template <class Combine, class Number> struct Update {
    __device__ static void at(Number *element, Number value)
    {
        typedef typename Word<sizeof(Number)>::type Bits;
        union {
            Bits bits;
            Number numbers[sizeof(Bits) / sizeof(Number)];
        } changed;
        Bits *word = (Bits *)((uint64)element / sizeof(Bits) * sizeof(Bits)), seen, before = *word;
        int part = (uint64)element % sizeof(Bits) / sizeof(Number);
        do {
            changed.bits = seen = before;
            changed.numbers[part] = Combine::of(changed.numbers[part], value);
            if (changed.bits == seen)
                return;
            before = atomicCAS(word, seen, changed.bits);
        } while (before != seen);
    }
};

#define NATIVE_UPDATE(Combine, function, Number, Bits)                                                                 \
    template <> struct Update<Combine, Number> {                                                                       \
        __device__ static void at(Number *element, Number value) { function((Bits *)element, (Bits)value); }           \
    }

NATIVE_UPDATE(Sums, atomicAdd, float32, float32);
NATIVE_UPDATE(Sums, atomicAdd, float64, float64);
NATIVE_UPDATE(Sums, atomicAdd, int32, int32);
NATIVE_UPDATE(Sums, atomicAdd, uint32, uint32);
NATIVE_UPDATE(Sums, atomicAdd, int64, uint64);
NATIVE_UPDATE(Sums, atomicAdd, uint64, uint64);
NATIVE_UPDATE(Maxima, atomicMax, int32, int32);
NATIVE_UPDATE(Maxima, atomicMax, int64, int64);
NATIVE_UPDATE(Minima, atomicMin, int32, int32);
NATIVE_UPDATE(Minima, atomicMin, int64, int64);

template <class Real> struct Update<Sums, Complex<Real>> {
    __device__ static void at(Complex<Real> *element, Complex<Real> value)
    {
        atomicAdd(&element->re, value.re);
        atomicAdd(&element->im, value.im);
    }
};

// Four neighbours that lie where 16 bytes do, added to at once where the device can.
__device__ inline void add_four(float32 *elements, const float32 (&values)[4])
{
#if defined(EMULATED) || __CUDA_ARCH__ < 900
    for (int k = 0; k < 4; ++k)
        atomicAdd(elements + k, values[k]);
#else
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(elements)),
                 "f"(values[0]), "f"(values[1]), "f"(values[2]), "f"(values[3])
                 : "memory");
#endif
}

// The type in which the host passes a factor of elements.
template <class Number> struct Factor {
    typedef int64 type;
};
template <> struct Factor<float32> {
    typedef float64 type;
};
template <> struct Factor<float64> {
    typedef float64 type;
};
template <class Real> struct Factor<Complex<Real>> {
    typedef Complex<float64> type;
};
