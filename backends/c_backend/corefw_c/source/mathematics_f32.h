/* Elementary functions of float: included by mathematics.h. The rarer ones are computed in double: nearly exact. */

INLINE uint32_t bits_f32(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

INLINE float from_bits_f32(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Added to a float of modulus < 2^22, this rounds it to an integer, which the low bits of the sum then hold. */
#define ROUNDER_F32 12582912.0f

INLINE float copysign_f32(float x, float sign) {
    return from_bits_f32((bits_f32(x) & 0x7fffffff) | (bits_f32(sign) & 0x80000000));
}

INLINE float abs_f32(float x) { return from_bits_f32(bits_f32(x) & 0x7fffffff); }

INLINE float sqrt_f32(float x) { return __builtin_sqrtf(x); }
INLINE float rsqrt_f32(float x) { return 1 / __builtin_sqrtf(x); }

/* As fmod_f64. */
INLINE float fmod_f32(float x, float y) {
    double n = __builtin_trunc((double)x / y), r = x - n * y, step = copysign_f32(y, x);
    r = r * x < 0 ? r + step : abs_f64(r) >= abs_f32(y) ? r - step : r;
    return n == 0 ? x : copysign_f32((float)r, x);
}

/* -- exponentials -- */

/* x * 2^k for an integer k of modulus < 250, given as k + ROUNDER_F32; in two steps, as 2^k may not be a number. */
INLINE float scaled_f32(float x, float k) {
    uint32_t biased = bits_f32(k) - bits_f32(ROUNDER_F32) + 254, half = biased >> 1;
    return x * from_bits_f32(half << 23) * from_bits_f32((biased - half) << 23);
}

/* (e^r - 1 - r) / r^2 for |r| <= log(2) / 2. */
INLINE float exp_tail_f32(float r) {
    float p = 0.00138823921f * r + 0.00836718082f;
    p = p * r + 0.041667223f;
    p = p * r + 0.16666539f;
    return p * r + 0.49999997f;
}

INLINE float exp_f32(float x) {
    x = x < -105 ? -105 : x > 89 ? 89 : x;
    float k = x * 1.44269504f + ROUNDER_F32, n = k - ROUNDER_F32;
    float r = x - n * 0.693115234f - n * 3.19461849e-05f;
    return scaled_f32(1 + (r + r * r * exp_tail_f32(r)), k);
}

INLINE float exp2_f32(float x) {
    x = x < -152 ? -152 : x > 129 ? 129 : x;
    float k = x + ROUNDER_F32, r = (x - (k - ROUNDER_F32)) * 0.693147181f;
    return scaled_f32(1 + (r + r * r * exp_tail_f32(r)), k);
}

INLINE float expm1_f32(float x) {
    float y = x < -20 ? -20 : x > 88.8f ? 88.8f : x;
    float k = y * 1.44269504f + ROUNDER_F32, n = k - ROUNDER_F32;
    float r = y - n * 0.693115234f - n * 3.19461849e-05f;
    float half = from_bits_f32((bits_f32(k) - bits_f32(ROUNDER_F32) + 126) << 23);
    float result = 2 * (half * (r + r * r * exp_tail_f32(r)) + (half - 0.5f));
    return x == 0 ? x : result;
}

/* -- logarithms -- */

/* x = m * 2^k with m between sqrt(1/2) and sqrt(2); x positive and finite. */
INLINE float split_f32(float x, float *k) {
    int subnormal = x < 1.17549435e-38f;
    uint32_t bits = bits_f32(subnormal ? x * 33554432 : x);
    int32_t exponent = (int32_t)(bits - 0x3f3504f3) >> 23;
    *k = (float)(exponent - (subnormal ? 25 : 0));
    return from_bits_f32(bits - ((uint32_t)exponent << 23));
}

/* log(1 + f) - f + f^2 / 2 for 1 + f between sqrt(1/2) and sqrt(2). */
INLINE float log_tail_f32(float f) {
    float p = -0.0764615312f * f + 0.127791584f;
    p = p * f - 0.13164188f;
    p = p * f + 0.14199689f;
    p = p * f - 0.166227639f;
    p = p * f + 0.200012922f;
    p = p * f - 0.250008374f;
    p = p * f + 0.333333313f;
    return f * f * f * p;
}

/* The result of a logarithm of x where x is not a positive finite number. */
INLINE float log_special_f32(float x, float result) {
    return x > 0 ? (x < INFINITY ? result : x) : (x == 0 ? -INFINITY : NAN);
}

INLINE float log_f32(float x) {
    float k, f = split_f32(x, &k) - 1;
    float result = k * 0.693115234f + (f - (0.5f * f * f - (log_tail_f32(f) + k * 3.19461849e-05f)));
    return log_special_f32(x, result);
}

INLINE float log1p_f32(float x) {
    float u = 1 + x, lost = u >= 2 ? 1 - (u - x) : x - (u - 1); /* u + lost = 1 + x */
    float k, f = split_f32(u, &k) - 1;
    float small = log_tail_f32(f) + (lost / u + k * 3.19461849e-05f);
    float result = log_special_f32(u, k * 0.693115234f + (f - (0.5f * f * f - small)));
    return x == 0 ? x : result;
}

INLINE float log2_f32(float x) { return (float)log2_f64(x); }
INLINE float log10_f32(float x) { return (float)log10_f64(x); }

/* -- hyperbolic functions -- */

INLINE float tanh_f32(float x) {
    float a = abs_f32(x), z = x * x, far = 1 - 2 / (exp_f32(2 * a) + 1);
    float p = -0.00589516293f * z + 0.0207959767f;
    p = p * z - 0.053783834f;
    p = p * z + 0.133319244f;
    p = p * z - 0.333332986f;
    return copysign_f32(a < 0.6f ? a + a * z * p : far, x);
}

INLINE float sigmoid_f32(float x) { return 1 / (1 + exp_f32(-x)); }

INLINE float cosh_f32(float x) { return (float)cosh_f64(x); }
INLINE float sinh_f32(float x) { return (float)sinh_f64(x); }
INLINE float asinh_f32(float x) { return (float)asinh_f64(x); }
INLINE float acosh_f32(float x) { return (float)acosh_f64(x); }
INLINE float atanh_f32(float x) { return (float)atanh_f64(x); }

/* -- trigonometric functions -- */

/* x - k pi/2 for the nearest integer k, whose low bits come in `quadrant`. */
INLINE float reduced_f32(float x, uint32_t *quadrant) {
    float k = x * 0.636619772f + ROUNDER_F32, n = k - ROUNDER_F32;
    *quadrant = bits_f32(k);
    return (float)((double)x - (double)n * 1.5707963267341256 - (double)n * 6.0771005065061922e-11);
}

/* sin(r) for |r| <= pi/4. */
INLINE float sin_core_f32(float r) {
    float z = r * r;
    return r + r * z * ((-0.000195087414f * z + 0.0083321128f) * z - 0.166666538f);
}

/* cos(r) for |r| <= pi/4. */
INLINE float cos_core_f32(float r) {
    float z = r * r;
    return 1 - (0.5f * z - z * z * ((2.44256826e-05f * z - 0.00138872513f) * z + 0.0416666456f));
}

INLINE float sin_f32(float x) {
    uint32_t quadrant;
    float r = reduced_f32(x, &quadrant);
    float result = quadrant & 1 ? cos_core_f32(r) : sin_core_f32(r);
    result = from_bits_f32(bits_f32(result) ^ (quadrant & 2) << 30);
    return x == 0 ? x : result;
}

INLINE float cos_f32(float x) {
    uint32_t quadrant;
    float r = reduced_f32(x, &quadrant);
    float result = quadrant & 1 ? sin_core_f32(r) : cos_core_f32(r);
    return from_bits_f32(bits_f32(result) ^ ((quadrant + 1) & 2) << 30);
}

INLINE float tan_f32(float x) { return (float)tan_f64(x); }
INLINE float asin_f32(float x) { return (float)asin_f64(x); }
INLINE float acos_f32(float x) { return (float)acos_f64(x); }
INLINE float atan_f32(float x) { return (float)atan_f64(x); }
INLINE float atan2_f32(float y, float x) { return (float)atan2_f64(y, x); }

INLINE float hypot_f32(float x, float y) {
    float length = (float)sqrt_f64((double)x * x + (double)y * y);
    return (abs_f32(x) == INFINITY) | (abs_f32(y) == INFINITY) ? INFINITY : length;
}

/* -- error function -- */

/* 1 - e^(polynomial of |x|), and near 0 a polynomial: both are computed. */
INLINE float erf_f32(float x) {
    float a = abs_f32(x), t = a > 4 ? 4 : a, z = x * x;
    float p = 0.000214594242f * t - 0.00321997027f;
    p = p * t + 0.0229060184f;
    p = p * t - 0.105286837f;
    p = p * t - 0.635699391f;
    p = p * t - 0.12851989f;
    p = p * t - t;
    float k = p * 1.44269504f + ROUNDER_F32, n = k - ROUNDER_F32;
    float r = p - n * 0.693115234f - n * 3.19461849e-05f;
    float power = from_bits_f32((bits_f32(k) - bits_f32(ROUNDER_F32) + 127) << 23);
    float far = 1 - power * (1 + (r + r * r * exp_tail_f32(r)));
    float q = -0.000597689766f * z + 0.00499098143f;
    q = q * z - 0.0267655682f;
    q = q * z + 0.112818025f;
    q = q * z - 0.376124948f;
    q = q * z + 0.128379151f;
    return a < 0.92f ? x + x * q : copysign_f32(far, x);
}

INLINE float erfc_f32(float x) { return (float)erfc_f64(x); }
INLINE float erfinv_f32(float x) { return (float)erfinv_f64(x); }

/* -- powers -- */

INLINE float pow_f32(float x, float y) {
    double k, f = split_f64(abs_f32(x), &k) - 1;
    double bounded = y > 1e30f ? 1e30 : y < -1e30f ? -1e30 : y;
    double logarithm = k + (f - (0.5 * f * f - log_tail_f64(f))) * 1.4426950408889634;
    return (float)pow_special_f64(x, y, exp2_f64(bounded * logarithm));
}
