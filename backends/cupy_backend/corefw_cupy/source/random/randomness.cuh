// Logarithms and circular functions of the random grids, in float64 without special cases. Polynomials from fdlibm (Sun
// Microsystems, 1993): each within an ulp.

// ln v for 0 < v < 1, v not subnormal: v = 2^k (1 + f) with 1 + f between the roots of 1/2 and 2.
__device__ inline double log_of_fraction(double v)
{
    const int64 root_of_half = 0x3FE6A09E667F3BCD;
    int64 bits = __double_as_longlong(v), exponent = (bits - root_of_half) >> 52;
    double f = __longlong_as_double(bits - (exponent << 52)) - 1, k = (int)exponent;
    double s = f / (2 + f), z = s * s, w = z * z, half_square = 0.5 * f * f;
    double even = w * fma(w, fma(w, 1.531383769920937332e-01, 2.222219843214978396e-01), 3.999999999940941908e-01);
    double odd = fma(w, fma(w, fma(w, 1.479819860511658591e-01, 1.818357216161805012e-01), 2.857142874366239149e-01),
                     6.666666666666735130e-01);
    double series = fma(z, odd, even);
    double low = fma(s, half_square + series, k * 1.90821492927058770002e-10);
    return fma(k, 6.93147180369123816490e-01, -((half_square - low) - f));
}

struct Direction {
    double cosine, sine;
};

// The direction `turns` turns from the first axis, |turns| <= 1/8.
__device__ inline Direction direction_near_axis(double turns)
{
    double x = turns * 6.28318530717958647693, z = x * x, half = 0.5 * z, w = 1 - half;
    double sine = fma(z, 1.58969099521155010221e-10, -2.50507602534068634195e-08);
    sine = fma(z, fma(z, sine, 2.75573137070700676789e-06), -1.98412698298579493134e-04);
    sine = fma(z, sine, 8.33333333332248946124e-03);
    double cosine = fma(z, -1.13596475577881948265e-11, 2.08757232129817482790e-09);
    cosine = fma(z, fma(z, cosine, -2.75573143513906633035e-07), 2.48015872894767294178e-05);
    cosine = fma(z, fma(z, cosine, -1.38888888888741095749e-03), 4.16666666666666019037e-02);
    return {w + ((1 - w - half) + z * z * cosine), fma(x * z, fma(z, sine, -1.66666666666666324348e-01), x)};
}

// The direction `turns` turns from the first axis, 0 <= turns <= 1: reduced to the nearest axis, which is exact.
__device__ inline Direction direction_of(double turns)
{
    int axis = (int)(4 * turns + 0.5);
    Direction near = direction_near_axis(turns - 0.25 * axis);
    double cosine = axis & 1 ? near.sine : near.cosine, sine = axis & 1 ? near.cosine : near.sine;
    return {(axis + 1) & 2 ? -cosine : cosine, axis & 2 ? -sine : sine};
}

// The tangent of pi x, |x| < 1/2: beyond 1/4 the cotangent of the complement, which is exact here.
__device__ inline double tangent_of_half_turns(double x)
{
    double modulus = fabs(x), complement = 0.5 - modulus;
    Direction d = direction_near_axis(0.5 * (modulus < complement ? modulus : complement));
    return copysign(modulus > 0.25 ? d.cosine / d.sine : d.sine / d.cosine, x);
}
