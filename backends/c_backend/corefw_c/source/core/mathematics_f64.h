/* Elementary functions of double: included by mathematics.h. */

/* Added to a double of modulus < 2^51, this rounds it to an integer, which the low bits of the sum then hold. */
#define ROUNDER_F64 6755399441055744.0

/* x without its low 32 bits: products of two such numbers are almost exact. */
INLINE double coarse_f64(double x) { return from_bits_f64(bits_f64(x) & 0xffffffff00000000u); }

INLINE double copysign_f64(double x, double sign) {
    return from_bits_f64((bits_f64(x) & 0x7fffffffffffffffu) | (bits_f64(sign) & 0x8000000000000000u));
}

INLINE double abs_f64(double x) { return from_bits_f64(bits_f64(x) & 0x7fffffffffffffffu); }

/* `mask`, all ones or zeros, chooses: where selections share a condition, compilers would make branches of `?:`. */
INLINE double select_f64(uint64_t mask, double if_ones, double if_zeros) {
    return from_bits_f64(bits_f64(if_zeros) ^ (mask & (bits_f64(if_ones) ^ bits_f64(if_zeros))));
}

INLINE double sqrt_f64(double x) { return __builtin_sqrt(x); }
INLINE double rsqrt_f64(double x) { return 1 / __builtin_sqrt(x); }

/* -- division -- */

/* x - n y for the integer n that x / y is rounded to towards 0. For |x / y| < MANY_TIMES the products are exact. */
INLINE double fmod_f64(double x, double y) {
    double n = __builtin_trunc(x / y), high = coarse_f64(y), step = copysign_f64(y, x);
    double r = (x - n * high) - n * (y - high);
    r = r * x < 0 ? r + step : abs_f64(r) >= abs_f64(y) ? r - step : r;
    return n == 0 ? x : copysign_f64(r, x);
}

/* -- exponentials -- */

/* x * 2^k for an integer k of modulus < 2000, given as k + ROUNDER_F64; in two steps, as 2^k may not be a number. */
INLINE double scaled_f64(double x, double k) {
    uint64_t biased = bits_f64(k) - bits_f64(ROUNDER_F64) + 2046, half = biased >> 1;
    return x * from_bits_f64(half << 52) * from_bits_f64((biased - half) << 52);
}

/* (e^r - 1 - r) / r^2 for |r| <= log(2) / 2. */
INLINE double exp_tail_f64(double r) {
    double p = 2.5053799314357974e-08 * r + 2.7627402934459982e-07;
    p = p * r + 2.7557411114237179e-06;
    p = p * r + 2.4801501985761364e-05;
    p = p * r + 0.00019841269711549562;
    p = p * r + 0.0013888888934153554;
    p = p * r + 0.0083333333333941596;
    p = p * r + 0.041666666666569423;
    p = p * r + 0.16666666666666582;
    return p * r + 0.50000000000000056;
}

/* e^(x - rest) * 2^shift, with |rest| at most the rounding error of x: does not overflow before the result does. */
INLINE double exp_parts_f64(double x, double rest, int shift) {
    x = x < -760 ? -760 : x > 760 ? 760 : x;
    double k = x * 1.4426950408889634 + ROUNDER_F64, n = k - ROUNDER_F64;
    double r = x - n * 0.69314718055989033 - n * 5.4979230187083712e-14 - rest;
    return scaled_f64(1 + (r + r * r * exp_tail_f64(r)), k + shift);
}

INLINE double exp_f64(double x) { return exp_parts_f64(x, 0, 0); }

INLINE double exp2_f64(double x) {
    x = x < -1100 ? -1100 : x > 1100 ? 1100 : x;
    double k = x + ROUNDER_F64, r = (x - (k - ROUNDER_F64)) * 0.69314718055994531;
    return scaled_f64(1 + (r + r * r * exp_tail_f64(r)), k);
}

INLINE double expm1_f64(double x) {
    double y = x < -50 ? -50 : x > 709.9 ? 709.9 : x;
    double k = y * 1.4426950408889634 + ROUNDER_F64, n = k - ROUNDER_F64;
    double r = y - n * 0.69314718055989033 - n * 5.4979230187083712e-14;
    double half = from_bits_f64((bits_f64(k) - bits_f64(ROUNDER_F64) + 1022) << 52);
    double result = 2 * (half * (r + r * r * exp_tail_f64(r)) + (half - 0.5));
    return x == 0 ? x : result;
}

/* -- logarithms -- */

/* x = m * 2^k with m between sqrt(1/2) and sqrt(2); x positive and finite. */
INLINE double split_f64(double x, double *k) {
    int subnormal = x < 2.2250738585072014e-308;
    uint64_t bits = bits_f64(subnormal ? x * 18014398509481984.0 : x);
    uint64_t exponent = (bits - 0x3fe6a09e667f3bcdu + (1024ull << 52)) >> 52;
    *k = from_bits_f64(exponent | 0x4330000000000000u) - (4503599627370496.0 + 1024) - (subnormal ? 54 : 0);
    return from_bits_f64(bits - (exponent << 52) + (1024ull << 52));
}

/* log(1 + f) - f + f^2 / 2 for 1 + f between sqrt(1/2) and sqrt(2). */
INLINE double log_tail_f64(double f) {
    double s = f / (2 + f), z = s * s;
    double p = 0.14802191178179844 * z + 0.15313459505225607;
    p = p * z + 0.1818358608325725;
    p = p * z + 0.22222198181887787;
    p = p * z + 0.28571428745916877;
    p = p * z + 0.39999999999400182;
    p = p * z + 0.66666666666667362;
    return s * (0.5 * f * f + p * z);
}

/* The result of a logarithm of x where x is not a positive finite number. */
INLINE double log_special_f64(double x, double result) {
    return x > 0 ? (x < INFINITY ? result : x) : (x == 0 ? -INFINITY : NAN);
}

INLINE double log_f64(double x) {
    double k, f = split_f64(x, &k) - 1;
    double result = k * 0.69314718055989033 + (f - (0.5 * f * f - (log_tail_f64(f) + k * 5.4979230187083712e-14)));
    return log_special_f64(x, result);
}

INLINE double log1p_f64(double x) {
    double u = 1 + x, lost = u >= 2 ? 1 - (u - x) : x - (u - 1); /* u + lost = 1 + x */
    double k, f = split_f64(u, &k) - 1;
    double small = log_tail_f64(f) + (lost / u + k * 5.4979230187083712e-14);
    double result = k * 0.69314718055989033 + (f - (0.5 * f * f - small));
    result = log_special_f64(u, result);
    return x == 0 ? x : result;
}

/* log(m) * (scale_high + scale_low) + k * (two_high + two_low): logarithms to other bases. */
INLINE double log_based_f64(double x, double scale_high, double scale_low, double two_high, double two_low) {
    double k, f = split_f64(x, &k) - 1, square = 0.5 * f * f;
    double high = coarse_f64(f - square), low = (f - high) - square + log_tail_f64(f);
    double leading = k * two_high, next = high * scale_high;
    double sum = leading + next;
    double rest = (leading - sum) + next + (k * two_low + (low + high) * scale_low + low * scale_high);
    return log_special_f64(x, sum + rest);
}

INLINE double log2_f64(double x) { return log_based_f64(x, 1.4426950216293335, 1.9259629911266175e-08, 1, 0); }

INLINE double log10_f64(double x) {
    return log_based_f64(x, 0.43429447710514069, 4.7981111416159728e-09, 0.30102999566361177, 3.6942390771589308e-13);
}

/* -- hyperbolic functions -- */

INLINE double tanh_f64(double x) {
    double a = abs_f64(x), t = expm1_f64(-2 * (a > 22 ? 22 : a));
    return copysign_f64(-t / (t + 2), x);
}

INLINE double sigmoid_f64(double x) { return 1 / (1 + exp_f64(-x)); }

INLINE double cosh_f64(double x) {
    double half = exp_parts_f64(abs_f64(x), 0, -1);
    return half + 0.25 / half;
}

INLINE double sinh_f64(double x) {
    double z = x * x, a = abs_f64(x), half = exp_parts_f64(a, 0, -1);
    double p = 7.760984627585296e-13 * z + 1.605718775978227e-10;
    p = p * z + 2.5052124037226788e-08;
    p = p * z + 2.7557319151578141e-06;
    p = p * z + 0.00019841269841448648;
    p = p * z + 0.0083333333333331251;
    p = p * z + 0.16666666666666669;
    return a < 1 ? x + x * z * p : copysign_f64(half - 0.25 / half, x);
}

INLINE double asinh_f64(double x) {
    double a = abs_f64(x), z = a * a;
    double near = a + z / (1 + sqrt_f64(1 + z));
    int far = a > 268435456;
    return copysign_f64(log1p_f64(far ? a - 1 : near) + (far ? 0.69314718055994531 : 0), x);
}

INLINE double acosh_f64(double x) {
    double t = x - 1, near = t + sqrt_f64(2 * t + t * t);
    int far = x > 268435456;
    double result = log1p_f64(far ? t : near) + (far ? 0.69314718055994531 : 0);
    return x >= 1 ? result : NAN;
}

INLINE double atanh_f64(double x) {
    double a = abs_f64(x);
    return copysign_f64(0.5 * log1p_f64(2 * a / (1 - a)), x);
}

/* -- trigonometric functions -- */

/* x - k pi/2 for the nearest integer k, whose low bits come in `quadrant`. pi/2 is in parts, for exact products. */
INLINE double reduced_f64(double x, uint64_t *quadrant) {
    double k = x * 0.63661977236758134 + ROUNDER_F64, n = k - ROUNDER_F64;
    *quadrant = bits_f64(k);
    double r = x - n * 1.5707963267341256 - n * 6.077100506303966e-11;
    return r - n * 2.0222662487111665e-21 - n * 8.4784276603688996e-32;
}

/* sin(r) for |r| <= pi/4. */
INLINE double sin_core_f64(double r) {
    double z = r * r;
    double p = 1.5892960265998779e-10 * z - 2.5050692450726052e-08;
    p = p * z + 2.7557313275872623e-06;
    p = p * z - 0.00019841269828618427;
    p = p * z + 0.0083333333333209404;
    p = p * z - 0.16666666666666627;
    return r + r * z * p;
}

/* cos(r) for |r| <= pi/4. */
INLINE double cos_core_f64(double r) {
    double z = r * r;
    double p = -1.1356265129520272e-11 * z + 2.0875657544838334e-09;
    p = p * z - 2.7557313865357292e-07;
    p = p * z + 2.4801587287782359e-05;
    p = p * z - 0.0013888888888871375;
    p = p * z + 0.041666666666666581;
    double half = 0.5 * z, high = 1 - half;
    return high + ((1 - high) - half + z * z * p);
}

INLINE double sin_f64(double x) {
    uint64_t quadrant;
    double r = reduced_f64(x, &quadrant);
    double result = quadrant & 1 ? cos_core_f64(r) : sin_core_f64(r);
    result = from_bits_f64(bits_f64(result) ^ (quadrant & 2) << 62);
    return x == 0 ? x : result;
}

INLINE double cos_f64(double x) {
    uint64_t quadrant;
    double r = reduced_f64(x, &quadrant);
    double result = quadrant & 1 ? sin_core_f64(r) : cos_core_f64(r);
    return from_bits_f64(bits_f64(result) ^ ((quadrant + 1) & 2) << 62);
}

INLINE double tan_f64(double x) {
    uint64_t quadrant;
    double r = reduced_f64(x, &quadrant), s = sin_core_f64(r), c = cos_core_f64(r);
    double result = quadrant & 1 ? -c / s : s / c;
    return x == 0 ? x : result;
}

/* (asin(x) - x) / x for z = x^2 <= 1/4 (FDLIBM, e_asin.c). */
INLINE double asin_tail_f64(double z) {
    double p = 3.47933107596021167570e-05 * z + 7.91534994289814532176e-04;
    p = p * z - 4.00555345006794114027e-02;
    p = p * z + 2.01212532134862925881e-01;
    p = p * z - 3.25565818622400915405e-01;
    p = p * z + 1.66666666666666657415e-01;
    double q = 7.70381505559019352791e-02 * z - 6.88283971605453293030e-01;
    q = q * z + 2.02094576023350569471e+00;
    q = q * z - 2.40339491173441421878e+00;
    return p * z / (q * z + 1);
}

INLINE double asin_f64(double x) {
    double a = abs_f64(x), z = a < 0.5 ? a * a : 0.5 - 0.5 * a;
    double root = a < 0.5 ? a : sqrt_f64(z), angle = root + root * asin_tail_f64(z);
    return copysign_f64(a < 0.5 ? angle : 1.5707963267948966 - (2 * angle - 6.123233995736766e-17), x);
}

INLINE double acos_f64(double x) {
    double a = abs_f64(x), z = a < 0.5 ? a * a : 0.5 - 0.5 * a;
    double root = a < 0.5 ? x : sqrt_f64(z), tail = root * asin_tail_f64(z);
    double middle = 1.5707963267948966 - (root - (6.123233995736766e-17 - tail));
    double outer = 2 * (root + tail);
    double turned = 3.1415926535897931 - (outer - 1.2246467991473532e-16);
    return select_f64(-(uint64_t)(a < 0.5), middle, select_f64(-(uint64_t)(x > 0), outer, turned));
}

/* The angle of the vector (x, y) with 0 <= y, 0 <= x, not both 0 (reduction and coefficients of Cephes, atan.c). */
INLINE double angle_f64(double y, double x) {
    uint64_t steep = -(uint64_t)(y > 2.414213562373095 * x), slanted = -(uint64_t)(y > 0.66 * x);
    double numerator = select_f64(steep, -x, select_f64(slanted, y - x, y));
    double t = numerator / select_f64(steep, y, select_f64(slanted, y + x, x)), z = t * t;
    double p = -8.750608600031904122785e-1 * z - 1.615753718733365076637e1;
    p = p * z - 7.500855792314704667340e1;
    p = p * z - 1.228866684490136173410e2;
    p = p * z - 6.485021904942025371773e1;
    double q = z + 2.485846490142306297962e1;
    q = q * z + 1.650270098316988542046e2;
    q = q * z + 4.328810604912902668951e2;
    q = q * z + 4.853903996359136964868e2;
    q = q * z + 1.945506571482613964425e2;
    double high = select_f64(steep, 1.5707963267948966, select_f64(slanted, 0.78539816339744828, 0));
    double low = select_f64(steep, 6.123233995736766e-17, select_f64(slanted, 3.061616997868383e-17, 0));
    return high + (t + (t * z * (p / q) + low));
}

INLINE double atan_f64(double x) {
    double a = abs_f64(x);
    return copysign_f64(angle_f64(a > 1e300 ? 1e300 : a, 1), x);
}

INLINE double atan2_f64(double y, double x) {
    double a = abs_f64(y), b = abs_f64(x);
    int infinite = (a == INFINITY) & (b == INFINITY);
    int shrunk = (a > 1e300) | (b > 1e300), grown = (a < 1e-290) & (b < 1e-290); /* against over- and underflow */
    double unit = shrunk ? 1e-10 : grown ? 0x1p200 : 1;
    a = infinite ? 1 : a * unit;
    b = infinite ? 1 : (a == 0) & (b == 0) ? 1 : b * unit;
    double r = b == INFINITY ? 0 : a == INFINITY ? 1.5707963267948966 : angle_f64(a, b);
    r = bits_f64(x) >> 63 ? 3.1415926535897931 - (r - 1.2246467991473532e-16) : r;
    r = copysign_f64(r, y);
    return (x != x) | (y != y) ? NAN : r;
}

INLINE double hypot_f64(double x, double y) {
    double a = abs_f64(x), b = abs_f64(y), high = a > b ? a : b, low = a > b ? b : a, ratio = low / high;
    double length = high == 0 ? 0 : high * sqrt_f64(1 + ratio * ratio);
    length = (x != x) | (y != y) ? NAN : length;
    return (a == INFINITY) | (b == INFINITY) ? INFINITY : length;
}

/* -- error function -- */

/* (erf(x) - x) / x for z = x^2 <= 0.85^2. */
INLINE double erf_near_f64(double z) {
    double p = -8.8399371966532592e-10 * z + 1.4190676942005291e-08;
    p = p * z - 1.6300684855021421e-07;
    p = p * z + 1.6457694943211765e-06;
    p = p * z - 1.4925451209769909e-05;
    p = p * z + 0.00012055326975648922;
    p = p * z - 0.00085483269039773521;
    p = p * z + 0.0052239776239338086;
    p = p * z - 0.026866170645018811;
    p = p * z + 0.11283791670954693;
    p = p * z - 0.37612638903183748;
    return p * z + 0.12837916709551259;
}

/* erfc(a) for 0.85 <= a: e^(-a^2) / a times a polynomial of (a - 3) / (a + 3), its odd and even part apart. */
INLINE double erfc_far_f64(double a) {
    a = a > 28 ? 28 : a;
    double v = (a - 3) / (a + 3), z = v * v;
    double odd = -1.1115750338533191e-08 * z + 5.9575119976746326e-08;
    odd = odd * z - 3.2940842431210542e-07;
    odd = odd * z + 1.8860322686573926e-06;
    odd = odd * z - 1.1111032595551029e-05;
    odd = odd * z + 6.8980051890457622e-05;
    odd = odd * z - 0.00041254379995517315;
    odd = odd * z + 0.00091082268971610263;
    odd = odd * z + 0.046350263331268036;
    odd = odd * z + 0.13988054760177041;
    odd = odd * z + 0.09530622695922801;
    double even = 2.0721120717957851e-08 * z - 9.4191993173093183e-08;
    even = even * z + 2.9772576300097598e-07;
    even = even * z - 9.9331381881018704e-07;
    even = even * z + 6.4642413911476131e-06;
    even = even * z - 8.4608262572737994e-05;
    even = even * z + 0.0012428761638834077;
    even = even * z - 0.014019825626409811;
    even = even * z - 0.095469750306621567;
    even = even * z - 0.14658304803289107;
    even = even * z + 0.0370034535441698479; /* and 1/2, added last for less rounding */
    double square = a * a, high = coarse_f64(a), low = a - high;
    double lost = (high * high - square) + 2 * high * low + low * low; /* of a^2 by rounding */
    return exp_parts_f64(-square, lost, 0) * ((0.5 + (odd * v + even)) / a);
}

INLINE double erf_f64(double x) {
    double a = abs_f64(x), near = a + a * erf_near_f64(x * x);
    return copysign_f64(select_f64(-(uint64_t)(a < 0.85), near, 1 - erfc_far_f64(a)), x);
}

INLINE double erfc_f64(double x) {
    double a = abs_f64(x), part = select_f64(-(uint64_t)(x < 0.25), 0, 0.5);
    double near = (1 - part) - ((x - part) + x * erf_near_f64(x * x)), far = erfc_far_f64(a);
    return select_f64(-(uint64_t)(a < 0.85), near, x < 0 ? 2 - far : far);
}

INLINE double normcdf_f64(double x) { return 0.5 * erfc_f64(x * -0.70710678118654752); }

/* A first approximation, then a step of Halley's method for erf(x) = |y|. */
INLINE double erfinv_f64(double y) {
    double a = abs_f64(y), bounded = a < 1 - 0x1p-53 ? a : 1 - 0x1p-53, w = -log_f64((1 - bounded) * (1 + bounded));
    uint64_t low = -(uint64_t)(w < 5);
    double v = select_f64(low, w - 2.5, sqrt_f64(w) - 3);
    double p = select_f64(low, 0, -3.9799276902656456e-07);
    p = p * v + select_f64(low, 0, 6.3758505144050343e-06);
    p = p * v + select_f64(low, 3.3563562152335155e-10, -4.2328272296843566e-05);
    p = p * v + select_f64(low, -8.7728582701801502e-09, 0.00014453809980404615);
    p = p * v + select_f64(low, 1.8035522230043041e-08, -0.0002258634752870373);
    p = p * v + select_f64(low, 4.6589292927482083e-07, -0.00012668744721303546);
    p = p * v + select_f64(low, -3.434601336993957e-06, 0.0014257449809368583);
    p = p * v + select_f64(low, -4.9618719165715827e-06, -0.0035497859211667307);
    p = p * v + select_f64(low, 0.00021828260596954671, 0.0057058923073128346);
    p = p * v + select_f64(low, -0.001252744652268143, -0.0076489481312859821);
    p = p * v + select_f64(low, -0.0041773393872352842, 0.0094427558822541835);
    p = p * v + select_f64(low, 0.24664028763138277, 1.0016757060112098);
    p = p * v + select_f64(low, 1.5014093535156012, 2.8329768671083624);
    double x = p * bounded;
    double near = (x - a) + x * erf_near_f64(x * x), far = (1 - a) - erfc_far_f64(x);
    double excess = select_f64(-(uint64_t)(a < 0.75), near, far);
    double step = excess * exp_f64(x * x) * 0.88622692545275801;
    x -= step / (1 + x * step);
    return copysign_f64(a < 1 ? x : a == 1 ? INFINITY : NAN, y);
}

/* -- powers -- */

/* The result of x^y where it does not follow from |x|^y for positive finite x, given that. */
INLINE double pow_special_f64(double x, double y, double result) {
    double a = abs_f64(x), half = 0.5 * y;
    int integral = y == __builtin_rint(y), odd = integral & (half != __builtin_rint(half));
    int negative = bits_f64(x) >> 63;
    result = (a == 0) | (a == INFINITY) ? ((a == 0) == (y > 0) ? 0 : INFINITY) : result;
    result = negative & odd ? -result : result;
    result = negative & !integral & (a > 0) & (a < INFINITY) ? NAN : result;
    result = (x != x) | (y != y) ? NAN : result;
    return (y == 0) | (x == 1) ? 1 : result;
}

/* The logarithm in twice the precision, as in FDLIBM's e_pow.c. */
INLINE double pow_f64(double x, double y) {
    double k, m = split_f64(abs_f64(x), &k);
    int low_half = m < 0.8164965809277260; /* m around 1 or around 2/3 */
    m = low_half ? 2 * m : m;
    k = low_half ? k - 1 : k;
    int upper = m > 1.2247448713915889;
    double center = upper ? 1.5 : 1, u = m - center, v = 1 / (m + center), s = u * v;
    double s_high = coarse_f64(s), sum_high = coarse_f64(m + center), sum_low = m - (sum_high - center);
    double s_low = v * ((u - s_high * sum_high) - s_high * sum_low), z = s * s;
    double r = 2.06975017800338417784e-01 * z + 2.30660745775561754067e-01;
    r = r * z + 2.72728123808534006489e-01;
    r = r * z + 3.33333329818377432918e-01;
    r = r * z + 4.28571428578550184252e-01;
    r = r * z + 5.99999999999994648725e-01;
    r = z * z * r + s_low * (s_high + s);
    double square = s_high * s_high, t_high = coarse_f64(3 + square + r), t_low = r - ((t_high - 3) - square);
    u = s_high * t_high;
    v = s_low * t_high + t_low * s;
    double p_high = coarse_f64(u + v), p_low = v - (p_high - u);
    double center_high = upper ? 5.84962487220764160156e-01 : 0, center_low = upper ? 1.35003920212974897128e-08 : 0;
    double z_high = 9.61796700954437255859e-01 * p_high;
    double z_low = -7.02846165095275826516e-09 * p_high + p_low * 9.61796693925975554329e-01 + center_low;
    double log_high = coarse_f64(((z_high + z_low) + center_high) + k);
    double log_low = z_low - (((log_high - k) - center_high) - z_high);

    double bounded = y > 0x1p100 ? 0x1p100 : y < -0x1p100 ? -0x1p100 : y, y_high = coarse_f64(bounded);
    double low = (bounded - y_high) * log_high + bounded * log_low, high = y_high * log_high, total = high + low;
    high = total > 1100 ? 1100 : total < -1100 ? -1100 : high;
    low = (total > 1100) | (total < -1100) ? 0 : low;
    double rounded = high + low + ROUNDER_F64;
    high -= rounded - ROUNDER_F64;
    double t = coarse_f64(high + low);
    u = t * 6.93147182464599609375e-01;
    v = (low - (t - high)) * 6.93147180559945286227e-01 + t * -1.90465429995776804525e-09;
    r = u + v;
    double rest = v - (r - u), power = 1 + (r + (rest + r * r * exp_tail_f64(r)));
    return pow_special_f64(x, y, scaled_f64(power, rounded));
}
