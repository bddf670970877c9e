// Elements as unsigned numbers of the same order, in which NaN comes last and both zeros are equal.

#include "types.cuh"

template <int size> struct UnsignedOf {
    typedef uint64 type;
};
template <> struct UnsignedOf<1> {
    typedef uint8 type;
};
template <> struct UnsignedOf<2> {
    typedef uint16 type;
};
template <> struct UnsignedOf<4> {
    typedef uint32 type;
};

typedef UnsignedOf<sizeof(T)>::type Key;

template <class Element> struct Floating {
    static const bool value = false;
};
template <> struct Floating<float> {
    static const bool value = true;
};
template <> struct Floating<double> : Floating<float> {};
template <> struct Floating<float16> : Floating<float> {};
template <> struct Floating<bfloat16> : Floating<float> {};

__device__ inline bool not_a_number(T x)
{
    return x != x;
}

__device__ inline Key key_of(T x)
{
    const Key sign = Key(1) << (8 * sizeof(T) - 1);
    if (not_a_number(x))
        return ~Key(0);
    Key bits = *(const Key *)&x;
    if (Floating<T>::value) {
        if (x == T(0))
            return sign;
        return bits & sign ? ~bits : bits | sign;
    }
    return T(-1) < T(0) ? bits ^ sign : bits;
}
