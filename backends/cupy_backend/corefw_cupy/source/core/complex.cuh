// Complex numbers. The inverse functions follow W. Kahan, "Branch cuts for complex elementary functions" (1987).

template <class Real> struct Complex {
    typedef Real value_type;
    Real re, im;

    Complex() = default;
    __device__ Complex(Real re, Real im = 0) : re(re), im(im) {}
    template <class Other> __device__ explicit Complex(Complex<Other> other) : re(other.re), im(other.im) {}

    __device__ Real real() const { return re; }
    __device__ Real imag() const { return im; }
};

#define COMPLEX template <class Real> __device__ inline Complex<Real>

COMPLEX operator+(Complex<Real> x, Complex<Real> y) { return {x.re + y.re, x.im + y.im}; }
COMPLEX operator-(Complex<Real> x, Complex<Real> y) { return {x.re - y.re, x.im - y.im}; }
COMPLEX operator-(Complex<Real> x) { return {-x.re, -x.im}; }
COMPLEX operator*(Complex<Real> x, Complex<Real> y) { return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re}; }
COMPLEX conj(Complex<Real> x) { return {x.re, -x.im}; }

// By R. L. Smith's method: without overflow where the result is small.
COMPLEX operator/(Complex<Real> x, Complex<Real> y)
{
    if (fabs(y.re) >= fabs(y.im)) {
        Real ratio = y.im / y.re, scale = 1 / (y.re + y.im * ratio);
        if (y.re == 0 && y.im == 0)
            return {x.re / fabs(y.re), x.im / fabs(y.re)};
        return {(x.re + x.im * ratio) * scale, (x.im - x.re * ratio) * scale};
    }
    Real ratio = y.re / y.im, scale = 1 / (y.im + y.re * ratio);
    return {(x.re * ratio + x.im) * scale, (x.im * ratio - x.re) * scale};
}

template <class Real> __device__ bool operator==(Complex<Real> x, Complex<Real> y)
{
    return x.re == y.re && x.im == y.im;
}
template <class Real> __device__ bool operator!=(Complex<Real> x, Complex<Real> y)
{
    return !(x == y);
}
template <class Real> __device__ Real abs(Complex<Real> x)
{
    return hypot(x.re, x.im);
}
template <class Real> __device__ Real arg(Complex<Real> x)
{
    return atan2(x.im, x.re);
}

COMPLEX exp(Complex<Real> x)
{
    Real size = exp(x.re);
    return x.im == 0 ? Complex<Real>(size, x.im) : Complex<Real>(size * cos(x.im), size * sin(x.im));
}
COMPLEX log(Complex<Real> x) { return {log(abs(x)), arg(x)}; }
COMPLEX log10(Complex<Real> x)
{
    Real scale = 0.43429448190325183;
    return {log10(abs(x)), arg(x) * scale};
}

COMPLEX sqrt(Complex<Real> x)
{
    if (x.re == 0 && x.im == 0)
        return {0, x.im};
    Real root = sqrt((fabs(x.re) + abs(x)) / 2), other = fabs(x.im) / (2 * root);
    return x.re >= 0 ? Complex<Real>(root, copysign(other, x.im)) : Complex<Real>(other, copysign(root, x.im));
}

COMPLEX pow(Complex<Real> x, Complex<Real> y)
{
    if (y.re == 0 && y.im == 0)
        return {1, 0};
    if (x.re == 0 && x.im == 0)
        return y.re > 0 ? Complex<Real>(0, 0) : Complex<Real>(NAN, NAN);
    return exp(y * log(x));
}

COMPLEX sinh(Complex<Real> x) { return {sinh(x.re) * cos(x.im), cosh(x.re) * sin(x.im)}; }
COMPLEX cosh(Complex<Real> x) { return {cosh(x.re) * cos(x.im), sinh(x.re) * sin(x.im)}; }
COMPLEX tanh(Complex<Real> x)
{
    Real tangent = tan(x.im), sine = sinh(x.re), square = 1 + tangent * tangent;
    if (fabs(x.re) > 40) // the rest is below the smallest difference from 1
        return {copysign(Real(1), x.re), 4 * exp(-2 * fabs(x.re)) * sin(x.im) * cos(x.im)};
    Real cosine = sqrt(1 + sine * sine), below = 1 + square * sine * sine;
    return {square * cosine * sine / below, tangent / below};
}

// i x and x / i, with which sin, tan, ... are made of sinh, tanh, ...
COMPLEX times_i(Complex<Real> x) { return {-x.im, x.re}; }
COMPLEX times_minus_i(Complex<Real> x) { return {x.im, -x.re}; }

COMPLEX asinh(Complex<Real> x)
{
    Complex<Real> a = sqrt(Complex<Real>(1 + x.im, -x.re)), b = sqrt(Complex<Real>(1 - x.im, x.re));
    return {asinh(a.re * b.im - b.re * a.im), atan2(x.im, a.re * b.re - a.im * b.im)};
}
COMPLEX acosh(Complex<Real> x)
{
    Complex<Real> a = sqrt(Complex<Real>(x.re - 1, x.im)), b = sqrt(Complex<Real>(x.re + 1, x.im));
    return {asinh(a.re * b.re + a.im * b.im), 2 * atan2(a.im, b.re)};
}
COMPLEX acos(Complex<Real> x)
{
    Complex<Real> a = sqrt(Complex<Real>(1 - x.re, -x.im)), b = sqrt(Complex<Real>(1 + x.re, x.im));
    return {2 * atan2(a.re, b.re), asinh(b.re * a.im - b.im * a.re)};
}
COMPLEX atanh(Complex<Real> x)
{
    Real real = fabs(x.re), distance = (1 - real) * (1 - real) + x.im * x.im;
    Real angle = atan2(2 * x.im, (1 - real) * (1 + real) - x.im * x.im) / 2;
    return {copysign(log1p(4 * real / distance) / 4, x.re), angle};
}

COMPLEX sin(Complex<Real> x) { return times_minus_i(sinh(times_i(x))); }
COMPLEX cos(Complex<Real> x) { return cosh(times_i(x)); }
COMPLEX tan(Complex<Real> x) { return times_minus_i(tanh(times_i(x))); }
COMPLEX asin(Complex<Real> x) { return times_minus_i(asinh(times_i(x))); }
COMPLEX atan(Complex<Real> x) { return times_minus_i(atanh(times_i(x))); }
