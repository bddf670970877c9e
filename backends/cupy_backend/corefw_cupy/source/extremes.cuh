// Comparing elements.

#include "types.cuh"

// The type of computation, of a whole number of words; for integers one that holds all their values.
template <class Element> struct Word {
    typedef typename Compute<Element>::type type;
};
template <> struct Word<bool> {
    typedef int32 type;
};
template <> struct Word<int8> {
    typedef int32 type;
};
template <> struct Word<uint8> {
    typedef int32 type;
};
template <> struct Word<int16> {
    typedef int32 type;
};
template <> struct Word<uint16> {
    typedef int32 type;
};

// The least and the greatest number of a type; for floating ones the infinities.
template <class Number> struct Bounds {
    static const bool is_signed = Number(-1) < Number(0);
    static const Number greatest = is_signed ? ~(Number(1) << (8 * sizeof(Number) - 1)) : Number(-1);
    __device__ static Number least() { return ~greatest; }
    __device__ static Number most() { return greatest; }
};
template <> struct Bounds<float> {
    __device__ static float least() { return -INFINITY; }
    __device__ static float most() { return INFINITY; }
};
template <> struct Bounds<double> {
    __device__ static double least() { return -INFINITY; }
    __device__ static double most() { return INFINITY; }
};
