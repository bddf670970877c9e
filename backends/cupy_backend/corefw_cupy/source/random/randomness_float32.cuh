// Logarithms and directions of the random grid of float32, as sums of two float32 numbers: exact to a quarter of a unit
// in the last place without a float64 operation, of which most GPUs do few at a time. Polynomials from the Cephes
// library (S. Moshier, 1989) and from FreeBSD's kernels of sinf and cosf.

struct Split {
    float high, low;
};

// ln (n / 2^24) for an odd n below 2^24: n / 2^24 = 2^k (1 + f), and ln (1 + f) = f - f^2 / 2 + f^3 p.
__device__ inline Split log_of_fraction(int n)
{
    int bits = __float_as_int(n * 0x1p-24f), k = (bits - 0x3F3504F3) >> 23;
    float f = __int_as_float(bits - (k << 23)) - 1, square = f * f;
    float p = fma(f, 7.0376836292e-2f, -1.1514610310e-1f);
    p = fma(f, fma(f, p, 1.1676998740e-1f), -1.2420140846e-1f);
    p = fma(f, fma(f, p, 1.4249322787e-1f), -1.6668057665e-1f);
    p = fma(f, fma(f, fma(f, p, 2.0000714765e-1f), -2.4999993993e-1f), 3.3333331174e-1f);
    float scaled = k * 0.693145751953125f; // without rounding: the factor is ln 2 to 17 bits
    float sum = scaled + f, lost = f - (sum - scaled);
    float half = 0.5f * square, high = sum - half;
    lost += (sum - high) - half;
    float low = lost + fma(f * square, p, fma(-0.5f, fma(f, f, -square), k * 1.42860682030941723e-6f));
    float both = high + low;
    return {both, low - (both - high)};
}

__device__ inline Split root(Split x)
{
    float inverse = rsqrt(x.high), near = x.high * inverse;
    return {near, 0.5f * inverse * (fma(-near, near, x.high) + x.low)};
}

__device__ inline float product(Split x, Split y)
{
    return fma(x.high, y.high, fma(x.high, y.low, x.low * (y.high + y.low)));
}

struct SplitDirection {
    Split cosine, sine;
};

// The direction n / 2^24 turns from the first axis, reduced to the nearest axis.
__device__ inline SplitDirection direction_of(int n)
{
    int axis = (n + (1 << 21)) >> 22;
    float rest = n - (axis << 22), x = rest * 0x1.921fb6p-22f; // 2 pi / 2^24
    float x_low = fma(rest, 0x1.921fb6p-22f, -x) + rest * -1.04216075e-14f;
    float z = x * x, z_low = fma(x, x, -z) + 2 * x * x_low;
    float sine = fma(z, fma(z, 2.7183114939898219064e-6f, -1.98393348360966317347e-4f), 8.3333293858894631756e-3f);
    sine = fma(z, sine, -1.66666666416265235595e-1f);
    float cosine = fma(z, fma(z, 2.43904487962774090654e-5f, -1.38867637746099294692e-3f), 4.16666233237390631894e-2f);
    float half = 0.5f * z, most = 1 - half;
    Split along = {most, ((1 - most) - half) + fma(z * z, cosine, -0.5f * z_low)};
    Split across = {x, fma(x * z, sine, fma(-half, x_low, x_low))};
    Split first = axis & 1 ? across : along, second = axis & 1 ? along : across;
    if ((axis + 1) & 2)
        first = {-first.high, -first.low};
    if (axis & 2)
        second = {-second.high, -second.low};
    return {first, second};
}
