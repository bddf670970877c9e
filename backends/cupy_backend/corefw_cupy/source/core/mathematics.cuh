// Functions that formulas use beside those of CUDA.

#include "core/complex.cuh"

template <class Number> struct Unsigned {
    typedef Number type;
};
template <> struct Unsigned<int32> {
    typedef uint32 type;
};
template <> struct Unsigned<int64> {
    typedef uint64 type;
};

template <class Number> __device__ inline Number sigmoid(Number x)
{
    return 1 / (1 + exp(-x));
}

// x, or what stands for NaN and the infinities.
template <class Number> __device__ Number finite(Number x, Number nan, Number positive, Number negative)
{
    return x != x ? nan : x == INFINITY ? positive : x == -INFINITY ? negative : x;
}

template <class Number> __device__ Number magnitude(Number x)
{
    return x < 0 ? 0 - x : x;
}

// Integers: quotient and rest, the former rounded to zero and down, the greatest common divisor, powers. The least number
// by -1 is itself, and leaves nothing: C++ does not say so.
template <class Number> __device__ bool is_minus_one(Number x)
{
    return Number(-1) < 0 && x == Number(-1);
}

template <class Number> __device__ Number quotient_of(Number x, Number y)
{
    return is_minus_one(y) ? Number(typename Unsigned<Number>::type(0) - x) : Number(x / y);
}

template <class Number> __device__ Number rest_of(Number x, Number y)
{
    return is_minus_one(y) ? Number(0) : Number(x % y);
}

template <class Number> __device__ Number divided_down(Number x, Number y)
{
    return quotient_of(x, y) - (rest_of(x, y) != 0 && (x < 0) != (y < 0));
}

template <class Number> __device__ Number greatest_divisor(Number x, Number y)
{
    while (y != 0) {
        Number rest = rest_of(x, y);
        x = y;
        y = rest;
    }
    return magnitude(x);
}

// x to the power of y; what is left of a fraction when y < 0.
template <class Number> __device__ Number integer_power(Number x, Number y)
{
    if (y < 0)
        return x == 1 ? 1 : x == Number(-1) ? (y % 2 ? Number(-1) : Number(1)) : Number(0);
    typename Unsigned<Number>::type result = 1, base = x;
    for (; y; y /= 2, base *= base)
        if (y % 2)
            result *= base;
    return result;
}

// The next number after x in the direction of y, for the half types: their bits are ordered as their magnitudes.
template <class Half> __device__ Half next_half(Half x, Half y)
{
    float from = x, to = y;
    if (from != from || to != to)
        return Half(from + to);
    if (from == to)
        return y;
    Half next = x;
    if (from == 0)
        next.bits = to > 0 ? 1 : 0x8001;
    else
        next.bits += (from < to) == (from > 0) ? 1 : -1;
    return next;
}

// Shifts by the number of bits or more move all bits out.
template <class Number> __device__ Number shifted_left(Number x, Number y)
{
    return y < 0 || y >= Number(8 * sizeof(Number)) ? 0 : (typename Unsigned<Number>::type)x << y;
}

template <class Number> __device__ Number shifted_right(Number x, Number y)
{
    Number most = 8 * sizeof(Number) - 1;
    return y < 0 || y > most ? (x < 0 ? -1 : 0) : x >> y;
}

// An element of another type, converted as processors do in C: integers keep their lowest bits. A device's own conversion
// of floating numbers to narrow or unsigned integers gives the nearest one instead, so they are converted to 64 bits first.
// Of a complex number the real part is taken.
template <class Result, class Source> struct Conversion {
    __device__ static Result of(Source x) { return narrowed((typename Compute<Source>::type)x); }

private:
    template <class Number> __device__ static Result narrowed(Number x) { return (Result)x; }
    __device__ static Result narrowed(float x) { return from_floating(x); }
    __device__ static Result narrowed(double x) { return from_floating(x); }
    template <class Real> __device__ static Result from_floating(Real x)
    {
        const bool floating = Result(0.5) != Result(0);
        if (floating || sizeof(Result) == 8 && (Result(-1) < Result(0) || x >= 0)) return (Result)x;
        return (Result)(int64)x;
    }
};
template <class Source> struct Conversion<bool, Source> {
    __device__ static bool of(Source x) { return (typename Compute<Source>::type)x != typename Compute<Source>::type(0); }
};
template <class Result, class Real> struct Conversion<Result, Complex<Real>> {
    __device__ static Result of(Complex<Real> x) { return Conversion<Result, Real>::of(x.real()); }
};
template <class Real> struct Conversion<bool, Complex<Real>> {
    __device__ static bool of(Complex<Real> x) { return x.real() != 0 || x.imag() != 0; }
};
template <class Result, class Source> struct Conversion<Complex<Result>, Source> {
    __device__ static Complex<Result> of(Source x) { return Complex<Result>(Conversion<Result, Source>::of(x), 0); }
};
template <class Result, class Real> struct Conversion<Complex<Result>, Complex<Real>> {
    __device__ static Complex<Result> of(Complex<Real> x) { return Complex<Result>(x.real(), x.imag()); }
};

template <class Result, class Source> __device__ Result converted(Source x)
{
    return Conversion<Result, Source>::of(x);
}

// The element whose bytes are the first ones of these two words.
template <class Element> __device__ Element from_bits(int64 low, int64 high)
{
    return (Element)low;
}
template <> __device__ inline bits128 from_bits<bits128>(int64 low, int64 high)
{
    bits128 element;
    element.low = low;
    element.high = high;
    return element;
}
