/* Elementary functions of double: included by mathematics.h. */

INLINE uint64_t bits_f64(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

INLINE double from_bits_f64(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

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

/* x - n y for the integer n that x / y is rounded to towards 0; holds for |x / y| < MANY_TIMES, where n y is exact in parts. */
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

/* e^x * 2^shift: does not overflow before the result does. */
INLINE double exp_shifted_f64(double x, int shift) {
    x = x < -760 ? -760 : x > 760 ? 760 : x;
    double k = x * 1.4426950408889634 + ROUNDER_F64, n = k - ROUNDER_F64;
    double r = x - n * 0.69314718055989033 - n * 5.4979230187083712e-14;
    return scaled_f64(1 + (r + r * r * exp_tail_f64(r)), k + shift);
}

INLINE double exp_f64(double x) { return exp_shifted_f64(x, 0); }

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
    double half = exp_shifted_f64(abs_f64(x), -1);
    return half + 0.25 / half;
}

INLINE double sinh_f64(double x) {
    double z = x * x, a = abs_f64(x), half = exp_shifted_f64(a, -1);
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

/* x - k pi/2 for the nearest integer k, whose low bits come in `quadrant`. pi/2 is split: the first products are exact. */
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
    return a < 0.5 ? middle : x > 0 ? outer : 3.1415926535897931 - (outer - 1.2246467991473532e-16);
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

/* -- error function (intervals and coefficients of FDLIBM, s_erf.c) -- */

/* The coefficient of a polynomial for the interval in which the argument lies. */
#define BY_INTERVAL(near, middle, far, farther) \
    select_f64(is_near, near, select_f64(is_middle, middle, select_f64(is_far, far, farther)))

/* On |x| < 0.84375 ("near") erf(|x|) - |x|; below 1.25 erf(|x|) - 0.845...; beyond erfc(|x|). */
INLINE double erf_part_f64(double x) {
    double a = abs_f64(x);
    a = a > 28 ? 28 : a;
    uint64_t is_near = -(uint64_t)(a < 0.84375), is_middle = -(uint64_t)(a < 1.25);
    uint64_t is_far = -(uint64_t)(a < 2.857142857142857);
    double z = select_f64(is_near, a * a, select_f64(is_middle, a - 1, 1 / (a * a)));
    double p = BY_INTERVAL(0, 0, -9.81432934416914548592e+00, 0);
    p = p * z + BY_INTERVAL(0, -2.16637559486879084300e-03, -8.12874355063065934246e+01, -4.83519191608651397019e+02);
    p = p * z + BY_INTERVAL(0, 3.54783043256182359371e-02, -1.84605092906711035994e+02, -1.02509513161107724954e+03);
    p = p * z + BY_INTERVAL(-2.37630166566501626084e-05, -1.10894694282396677476e-01, -1.62396669462573470355e+02,
                            -6.37566443368389627722e+02);
    p = p * z + BY_INTERVAL(-5.77027029648944159157e-03, 3.18346619901161753674e-01, -6.23753324503260060396e+01,
                            -1.60636384855821916062e+02);
    p = p * z + BY_INTERVAL(-2.84817495755985104766e-02, -3.72207876035701323847e-01, -1.05586262253232909814e+01,
                            -1.77579549177547519889e+01);
    p = p * z + BY_INTERVAL(-3.25042107247001499370e-01, 4.14856118683748331666e-01, -6.93858572707181764372e-01,
                            -7.99283237680523006574e-01);
    p = p * z + BY_INTERVAL(1.28379167095512558561e-01, -2.36211856075265944077e-03, -9.86494403484714822705e-03,
                            -9.86494292470009928597e-03);
    double q = BY_INTERVAL(0, 0, -6.04244152148580987438e-02, 0);
    q = q * z + BY_INTERVAL(0, 0, 6.57024977031928170135e+00, -2.24409524465858183362e+01);
    q = q * z + BY_INTERVAL(0, 1.19844998467991074170e-02, 1.08635005541779435134e+02, 4.74528541206955367215e+02);
    q = q * z + BY_INTERVAL(-3.96022827877536812320e-06, 1.36370839120290507362e-02, 4.29008140027567833386e+02,
                            2.55305040643316442583e+03);
    q = q * z + BY_INTERVAL(1.32494738004321644526e-04, 1.26171219808761642112e-01, 6.45387271733267880336e+02,
                            3.19985821950859553908e+03);
    q = q * z + BY_INTERVAL(5.08130628187576562776e-03, 7.18286544141962662868e-02, 4.34565877475229228821e+02,
                            1.53672958608443695994e+03);
    q = q * z + BY_INTERVAL(6.50222499887672944485e-02, 5.40397917702171048937e-01, 1.37657754143519042600e+02,
                            3.25792512996573918826e+02);
    q = q * z + BY_INTERVAL(3.97917223959155352819e-01, 1.06420880400844228286e-01, 1.96512716674392571292e+01,
                            3.03380607434824582924e+01);
    double ratio = p / (q * z + 1), coarse = coarse_f64(a);
    double tail = exp_f64(-coarse * coarse - 0.5625) * exp_f64((coarse - a) * (coarse + a) + ratio) / a;
    return select_f64(is_near, a * ratio, select_f64(is_middle, ratio, tail));
}

INLINE double erf_f64(double x) {
    double a = abs_f64(x), part = erf_part_f64(x);
    uint64_t is_near = -(uint64_t)(a < 0.84375), is_middle = -(uint64_t)(a < 1.25);
    double result = select_f64(is_near, a + part, select_f64(is_middle, 8.45062911510467529297e-01 + part, 1 - part));
    return copysign_f64(result, x);
}

INLINE double erfc_f64(double x) {
    double a = abs_f64(x), part = erf_part_f64(x);
    double signed_part = from_bits_f64(bits_f64(part) ^ (bits_f64(x) & 1ull << 63));
    uint64_t is_near = -(uint64_t)(a < 0.84375), is_middle = -(uint64_t)(a < 1.25), is_negative = -(bits_f64(x) >> 63);
    double near = x < 0.25 ? 1 - (x + signed_part) : 0.5 - ((x - 0.5) + signed_part);
    double middle = select_f64(is_negative, 1 + (8.45062911510467529297e-01 + part), 1.54937088489532470703e-01 - part);
    double far = select_f64(is_negative, 2 - part, part);
    return select_f64(is_near, near, select_f64(is_middle, middle, far));
}

/* A step of Newton's method for erf(x) = y, 0 <= y < 1. */
INLINE double erfinv_step_f64(double x, double y) {
    double part = erf_part_f64(x);
    uint64_t is_near = -(uint64_t)(x < 0.84375), is_middle = -(uint64_t)(x < 1.25);
    double known = select_f64(is_near, x, select_f64(is_middle, 8.45062911510467529297e-01, 1));
    double excess = (known - y) + select_f64(is_middle, part, -part);
    return x - excess * exp_f64(x * x) * 0.88622692545275801;
}

INLINE double erfinv_f64(double y) {
    double a = abs_f64(y), z = a * a, w = sqrt_f64(-log_f64((1 - (a < 1 - 0x1p-53 ? a : 1 - 0x1p-53)) * 0.5));
    double near = a * (((-0.140543331 * z + 0.914624893) * z - 1.645349621) * z + 0.886226899) /
                  ((((0.012229801 * z - 0.329097515) * z + 1.442710462) * z - 2.118377725) * z + 1);
    double far = (((1.641345311 * w + 3.429567803) * w - 1.624906493) * w - 1.970840454) /
                 ((1.637067800 * w + 3.543889200) * w + 1);
    double x = erfinv_step_f64(erfinv_step_f64(a <= 0.7 ? near : far, a), a);
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
