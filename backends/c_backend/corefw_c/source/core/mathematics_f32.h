/* Elementary functions of float: included by mathematics.h. The rarer ones are computed in double: nearly exact. */

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

/* 2^x for |x| < 126. Not by Horner's rule, here and below: shorter chains of operations. */
INLINE float power_of_two_f32(float x) {
    float k = x + ROUNDER_F32, r = x - (k - ROUNDER_F32), z = r * r;
    float power = from_bits_f32((bits_f32(k) - bits_f32(ROUNDER_F32) + 127) << 23);
    float p = (0.000153533619f * r + 0.00133988744f) * z + (0.00961843736f * r + 0.0555033247f);
    p = p * z + (0.240226479f * r + 0.693147203f);
    return power * (p * r + 1);
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
    float z = f * f;
    float high = (-0.0764615312f * f + 0.127791584f) * z + (-0.13164188f * f + 0.14199689f);
    float low = (-0.166227639f * f + 0.200012922f) * z + (-0.250008374f * f + 0.333333313f);
    return z * f * (high * (z * z) + low);
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

/* log(x) for x as great or small as a float, in double with a relative error of 2^-36. */
INLINE double log_brief(double x) {
    uint64_t bits = bits_f64(x), exponent = (bits - 0x3fe6a09e667f3bcdu + (1024ull << 52)) >> 52;
    double k = from_bits_f64(exponent | 0x4330000000000000u) - (4503599627370496.0 + 1024);
    double f = from_bits_f64(bits - (exponent << 52) + (1024ull << 52)) - 1, s = f / (2 + f), z = s * s;
    double p = 0.23587845829355203 * z + 0.28537025790358655;
    p = p * z + 0.40000339344322311;
    p = p * z + 0.66666665628568555;
    return k * 0.69314718055994531 + (f - (0.5 * f * f - s * (0.5 * f * f + p * z)));
}

INLINE float log2_f32(float x) { return log_special_f32(x, (float)(log_brief(x) * 1.4426950408889634)); }
INLINE float log10_f32(float x) { return log_special_f32(x, (float)(log_brief(x) * 0.43429448190325182)); }

/* -- hyperbolic functions -- */

/* Near 0 |x| plus a polynomial, else 1 - 2 / (1 + e^(2 |x|)): both are computed. */
INLINE float tanh_f32(float x) {
    float a = abs_f32(x), t = a > 10 ? 10 : a, z = x * x;
    float far = 1 - 2 / (power_of_two_f32(t * 2.88539008f) + 1);
    float p = (-0.00589516293f * z + 0.0207959767f) * (z * z) + (-0.053783834f * z + 0.133319244f);
    p = p * z - 0.333332986f;
    return copysign_f32(a < 0.6f ? a + a * (z * p) : far, x);
}

INLINE float sigmoid_f32(float x) { return 1 / (1 + exp_f32(-x)); }

INLINE float cosh_f32(float x) { return (float)cosh_f64(x); }
INLINE float sinh_f32(float x) { return (float)sinh_f64(x); }

INLINE float asinh_f32(float x) {
    double a = abs_f32(x), near = a - a * a * a * 0.16666666666666666;
    float far = log_special_f32((float)a, (float)log_brief(a + sqrt_f64(a * a + 1)));
    return copysign_f32(a < 0x1p-9 ? (float)near : far, x);
}

INLINE float acosh_f32(float x) {
    float result = log_special_f32(x, (float)log_brief(x + sqrt_f64((double)x * x - 1)));
    return x >= 1 ? result : NAN;
}

INLINE float atanh_f32(float x) {
    double a = abs_f32(x), near = a + a * a * a * 0.33333333333333333;
    float far = log_special_f32(1 - (float)a, (float)(0.5 * log_brief((1 + a) / (1 - a))));
    return copysign_f32(a < 0x1p-9 ? (float)near : a == 1 ? INFINITY : far, x);
}

/* -- trigonometric functions -- */

/* x - n pi for an n of modulus < 2^16 in steps of 1/2. */
INLINE float less_half_turns_f32(float x, float n) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    float r = __builtin_fmaf(n, -3.14159274f, x); /* for |x| >= 1 exact */
    r = __builtin_fmaf(n, 8.74227766e-08f, r);
    return __builtin_fmaf(n, 3.43024902e-15f, r);
#else
    return (float)((double)x - (double)n * 3.1415926534682512 - (double)n * 1.2154201013012384e-10);
#endif
}

/* sin(r) for |r| <= pi/2, or its negative where the low bit of `turns` is set. */
INLINE float sin_core_f32(float r, float turns) {
    float z = r * r, p = (2.60609568e-06f * z - 0.000198097769f) * z + 0.00833306927f;
    float result = r + r * z * (p * z - 0.166666597f);
    return from_bits_f32(bits_f32(result) ^ bits_f32(turns) << 31);
}

INLINE float sin_f32(float x) {
    float k = x * 0.318309886f + ROUNDER_F32;
    float result = sin_core_f32(less_half_turns_f32(x, k - ROUNDER_F32), k);
    return x == 0 ? x : result;
}

/* The sine of x + pi/2. */
INLINE float cos_f32(float x) {
    float k = (x * 0.318309886f + 0.5f) + ROUNDER_F32;
    return sin_core_f32(less_half_turns_f32(x, (k - ROUNDER_F32) - 0.5f), k);
}

INLINE float tan_f32(float x) { return (float)tan_f64(x); }
INLINE float asin_f32(float x) { return (float)asin_f64(x); }
INLINE float acos_f32(float x) { return (float)acos_f64(x); }

/* atan(t) for 0 <= t <= 1, with a relative error of 2^-28. */
INLINE double atan_brief(double t) {
    double z = t * t, p = -0.0017936078390557791 * z + 0.010914543540721874;
    p = p * z - 0.031177729433891986;
    p = p * z + 0.057957475973109282;
    p = p * z - 0.084034434042044165;
    p = p * z + 0.10952183383416945;
    p = p * z - 0.14264241218522655;
    p = p * z + 0.19998548240481853;
    p = p * z - 0.33333299087658802;
    return t + t * z * p;
}

INLINE float atan2_f32(float y, float x) {
    float a = abs_f32(y), b = abs_f32(x), low = b < a ? b : a, high = b < a ? a : b;
    int alike = (a == b) & ((a == 0) | (a == INFINITY)); /* then their quotient is no number */
    double r = atan_brief((double)(alike ? (a == 0 ? 0 : 1) : low) / (alike ? 1 : high));
    r = b < a ? 1.5707963267948966 - r : r;
    r = bits_f32(x) >> 31 ? 3.1415926535897931 - r : r;
    return copysign_f32((float)r, y);
}

INLINE float atan_f32(float x) { return atan2_f32(x, 1); }

INLINE float hypot_f32(float x, float y) {
    float length = (float)sqrt_f64((double)x * x + (double)y * y);
    return (abs_f32(x) == INFINITY) | (abs_f32(y) == INFINITY) ? INFINITY : length;
}

/* -- error function -- */

/* 1 - 2^(polynomial of |x|), and near 0 x plus a polynomial: both are computed. */
INLINE float erf_f32(float x) {
    float a = abs_f32(x), t = a > 4 ? 4 : a, u = t * t, z = x * x;
    float p = (0.000308061568f * t - 0.00463294199f) * u + (0.0330068276f * t - 0.151835907f);
    p = p * u + (-0.917165894f * t + 0.37190313f);
    float far = 1 - power_of_two_f32(p * t - 2 * t);
    float q = (-0.000581612318f * z + 0.00495796495f) * (z * z) + (-0.0267419952f * z + 0.112811211f);
    q = q * (z * z) + (-0.376124259f * z + 0.128379139f);
    return a < 0.94f ? x + x * q : copysign_f32(far, x);
}

/* t e^(polynomial of t - x^2) with t = 1 / (1 + |x| / 2). */
INLINE float erfc_f32(float x) {
    double a = abs_f32(x), bounded = a > 10.2 ? 10.2 : a, t = 1 / (1 + 0.5 * bounded);
    double p = -0.076047328743070727 * t + 0.34330493868270417;
    p = p * t - 0.39824305921330933;
    p = p * t - 0.53252849964262694;
    p = p * t + 1.8407452654243073;
    p = p * t - 1.8297692113991104;
    p = p * t + 0.81670291316339449;
    p = p * t - 0.42381169978014904;
    p = p * t + 0.16028800174892083;
    p = p * t + 0.36400857001183862;
    p = p * t + 1.0008937274605612;
    p = p * t - 1.2655436203076449;
    double tail = t * exp_f64(p - bounded * bounded);
    return (float)(x < 0 ? 2 - tail : tail);
}

/* The lower tail as 2^(polynomial of |x|), with an absolute error of 2^-23. */
INLINE float normcdf_f32(float x) {
    float a = abs_f32(x), t = a > 5.8f ? 5.8f : a, u = t * t;
    float high = (8.47014157e-06f * t - 5.39035468e-05f) * u + (-0.000421236499f * t + 0.00738927323f);
    float low = (-0.0526911126f * t - 0.459153148f) * u + (-1.15111094f * t - 0.999999896f);
    float tail = a > 5.8f ? 0 : power_of_two_f32(high * (u * u) + low);
    return x > 0 ? 1 - tail : tail;
}

/* In w = -log(1 - y^2), as M. Giles, "Approximating the erfinv function" (2010). */
INLINE float erfinv_f32(float y) {
    double a = abs_f32(y), w = -log_brief(a < 1 ? 1 - a * a : 0x1p-24);
    double v = w < 5 ? w - 2.5 : sqrt_f64(w) - 3;
    uint64_t low = -(uint64_t)(w < 5);
    double p = select_f64(low, -8.790397872647047e-09, 0.0001213254996236198);
    p = p * v + select_f64(low, 2.3234027098609395e-08, -0.00031400000206321255);
    p = p * v + select_f64(low, 4.6616253417812231e-07, -6.5119083839485902e-05);
    p = p * v + select_f64(low, -3.4627223805119122e-06, 0.001490417258978734);
    p = p * v + select_f64(low, -4.9633186231629148e-06, -0.0035930051063163158);
    p = p * v + select_f64(low, 0.00021834450829369957, 0.0056850366915357844);
    p = p * v + select_f64(low, -0.0012527418993822444, -0.0076382042148009878);
    p = p * v + select_f64(low, -0.0041773868562556375, 0.0094454976284425798);
    p = p * v + select_f64(low, 0.24664028612549982, 1.0016750207247802);
    p = p * v + select_f64(low, 1.5014093592721705, 2.8329767980815013);
    float result = (float)(p * a);
    return copysign_f32(a < 1 ? result : a == 1 ? INFINITY : NAN, y);
}

/* -- powers -- */

/* As pow_special_f64. */
INLINE float pow_special_f32(float x, float y, float result) {
    float a = abs_f32(x), half = 0.5f * y;
    int integral = y == __builtin_rintf(y), odd = integral & (half != __builtin_rintf(half));
    int negative = bits_f32(x) >> 31;
    result = (a == 0) | (a == INFINITY) ? ((a == 0) == (y > 0) ? 0 : INFINITY) : result;
    result = negative & odd ? -result : result;
    result = negative & !integral & (a > 0) & (a < INFINITY) ? NAN : result;
    result = (x != x) | (y != y) ? NAN : result;
    return (y == 0) | (x == 1) ? 1 : result;
}

INLINE float pow_f32(float x, float y) {
    double bounded = y > 1e30f ? 1e30 : y < -1e30f ? -1e30 : y;
    double z = bounded * log_brief(abs_f32(x)) * 1.4426950408889634;
    z = z < -1000 ? -1000 : z > 1000 ? 1000 : z;
    double k = z + ROUNDER_F64, r = z - (k - ROUNDER_F64);
    double p = 1.5195041231475461e-05 * r + 0.00015468023042472233;
    p = p * r + 0.0013333950240943095;
    p = p * r + 0.0096180344559844005;
    p = p * r + 0.055504103353995846;
    p = p * r + 0.24022651089214581;
    p = p * r + 0.69314718071641879;
    double power = (1 + r * p) * from_bits_f64((bits_f64(k) - bits_f64(ROUNDER_F64) + 1023) << 52);
    return pow_special_f32(x, y, (float)power);
}
