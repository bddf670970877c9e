/* The regularised incomplete gamma functions P(a, x) and Q(a, x): a power series, a continued fraction, and Temme's
 * uniform expansion where a and x are close and great. */

/* (-1)**n (zeta(n) - 1) / n, from n = 26 down to 2 */
TABLE LOG_GAMMA_NEAR[25] = {
    5.7313672416788620133e-10, -1.1921401405860912074e-9, 2.4836745438024783172e-9, -5.1834750419700466551e-9,
    1.0838659214896954091e-8, -2.271109460894316491e-8, 4.7698101693639805658e-8, -1.0043224823968099609e-7,
    2.1207184805554665869e-7, -4.4924691987645660433e-7, 9.5514121304074198329e-7, -2.0392157538013662368e-6,
    4.3748667899074878042e-6, -9.439488275268395904e-6, 0.000020507212775670691553, -0.0000449262367381331417,
    0.000099457512781808533715, -0.00022315475845357937976, 0.00050966952474304242234, -0.0011927539117032609771,
    0.0028905103307415232858, -0.0073855510286739852663, 0.020580808427784547879, -0.067352301053198095133,
    0.32246703342411321824
};

/* log(gamma(1 + x)) for -0.5 <= x <= 1.5, DLMF 5.7.3 */
SPECIAL double log_gamma_of_one_and(double x) {
    if (x > 0.5) return log_gamma(1 + x);
    return x * (1 - EULER + x * polynomial(LOG_GAMMA_NEAR, 24, x)) - log1p(x);
}

/* log(1 + x) - x */
SPECIAL double log1p_rest(double x) {
    if (fabs(x) > 0.5) return log1p(x) - x;
    double power = x, sum = 0;
    for (int n = 2; n < 100; n++) {
        power *= -x;
        sum += power / n;
        if (fabs(power) <= 1e-17 * fabs(sum)) break;
    }
    return sum;
}

/* x**a exp(-x) / gamma(a); for great a by Stirling's series, as C. Loader, "Fast and accurate computation of binomial
 * probabilities" (2000), so that the great powers cancel before they are rounded */
SPECIAL double gamma_density(double a, double x) {
    if (a < 16) return pow(x, a) * exp(-x) / tgamma(a);
    const double z = 1 / (a * a);
    const double rest = (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z * (1.0 / 1680 - z * (1.0 / 1188))))) / a;
    return sqrt(a * 0.15915494309189533577) * exp(a * log1p_rest((x - a) / a) - rest);
}

/* P for x < a, DLMF 8.11.4 */
SPECIAL double gamma_series(double a, double x) {
    double term = 1, sum = 1;
    for (int n = 1; n < 2000 && term > 1e-17 * sum; n++) {
        term *= x / (a + n);
        sum += term;
    }
    const double density = gamma_density(a, x);
    return density == 0 ? 0 : density / a * sum;
}

/* Q for small x, DLMF 8.7.3, without the cancellation of 1 - P */
SPECIAL double gamma_small_series(double a, double x) {
    double power = 1, sum = 0;
    for (int n = 1; n < 2000; n++) {
        power *= -x / n;
        const double term = power / (a + n);
        sum += term;
        if (fabs(term) <= 1e-17 * fabs(sum)) break;
    }
    const double logarithm = a * log(x);
    return -expm1(logarithm - log_gamma_of_one_and(a)) - exp(logarithm - log_gamma(a)) * sum;
}

/* Q for x > a, DLMF 8.9.2, by Lentz' method */
SPECIAL double gamma_fraction(double a, double x) {
    double b = x + 1 - a, c = INFINITY, d = 1 / b, value = d;
    for (int n = 1; n < 2000; n++) {
        const double numerator = n * (a - n);
        b += 2;
        d = 1 / (b + numerator * d);
        c = b + numerator / c;
        value *= c * d;
        if (fabs(c * d - 1) <= 1e-16) break;
    }
    const double density = gamma_density(a, x);
    return density == 0 ? 0 : density * value;
}

/* P (side -1) or Q (side 1) where a and x are close, DLMF 8.12.3, 8.12.4 and 8.12.7 */
SPECIAL double gamma_uniform(double a, double x, int side) {
    const double half_square = -log1p_rest((x - a) / a), eta = copysign(sqrt(2 * half_square), x - a);
    double sum = 0;
    for (int k = 13; k >= 0; k--) sum = sum / a + polynomial(TEMME + 25 * k, 24, eta);
    const double rest = exp(-a * half_square) * sum / sqrt(6.28318530717958647693 * a);
    return erfc(side * eta * sqrt(a / 2)) / 2 + side * rest;
}

/* P (side -1) or Q (side 1) where it needs no computation, else NaN or -1 where it needs one */
SPECIAL double gamma_limit(double a, double x, int side) {
    const double none = side < 0 ? 0 : 1; /* of the integral from 0 to x */
    if (!(a >= 0 && x >= 0) || (a == 0 && x == 0) || (a == INFINITY && x == INFINITY)) return NAN;
    if (x == 0 || a == INFINITY) return none;
    if (a == 0 || x == INFINITY) return 1 - none;
    return -1;
}

SPECIAL int are_close(double a, double x) { return a > 20 && fabs(x - a) < 0.3 * a; }

SPECIAL double gamma_q(double a, double x) {
    const double known = gamma_limit(a, x, 1);
    if (known != -1) return known;
    if (are_close(a, x)) return gamma_uniform(a, x, 1);
    if (x > 1.1) return x < a ? 1 - gamma_series(a, x) : gamma_fraction(a, x);
    return (x <= 0.5 ? -0.4 / log(x) : x * 1.1) < a ? 1 - gamma_series(a, x) : gamma_small_series(a, x);
}

SPECIAL double gamma_p(double a, double x) {
    const double known = gamma_limit(a, x, -1);
    if (known != -1) return known;
    if (are_close(a, x)) return gamma_uniform(a, x, -1);
    return x > 1 && x > a ? 1 - gamma_fraction(a, x) : gamma_series(a, x);
}
