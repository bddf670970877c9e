/* The logarithm of the gamma function, its derivatives, and Hurwitz' zeta function. */

#define EULER 0.57721566490153286061

SPECIAL double log_gamma(double x) {
#ifdef __cplusplus
    return lgamma(x);
#else
    int sign;
    return lgamma_r(x, &sign); /* lgamma writes a variable that threads share */
#endif
}

/* digamma on [1, 2]: (x - root) (Y + P(x - 1) / Q(x - 1)), John Maddock's fit for Boost 1.35 (Boost Software License);
 * from 10 on log(x) - 1 / (2 x) - the polynomial in 1 / x**2, DLMF 5.11.2 */
TABLE DIGAMMA_P[6] = {
    -0.0020713321167745952, -0.045251321448739056, -0.28919126444774784, -0.65031853770896507, -0.32555031186804491,
    0.25479851061131551
};
TABLE DIGAMMA_Q[7] = {
    -0.55789841321675513e-6, 0.0021284987017821144, 0.054151797245674225, 0.43593529692665969, 1.4606242909763515,
    2.0767117023730469, 1.0
};
TABLE DIGAMMA_FAR[7] = {
    8.33333333333333333333e-2, -2.10927960927960927961e-2, 7.57575757575757575758e-3, -4.16666666666666666667e-3,
    3.96825396825396825397e-3, -8.33333333333333333333e-3, 8.33333333333333333333e-2
};

SPECIAL double digamma_near(double x) {
    const double from_root = x - 1569415565.0 / 1073741824 - 381566830.0 / 1073741824 / 1073741824 - 9.016312093258695919e-20;
    const double ratio = polynomial(DIGAMMA_P, 5, x - 1) / polynomial(DIGAMMA_Q, 6, x - 1);
    return from_root * 0.99558162689208984 + from_root * ratio;
}

SPECIAL double digamma(double x) {
    double value = 0;
    if (x == 0) return copysign(INFINITY, -x);
    if (x < 0) { /* DLMF 5.5.4 */
        const double part = x - rint(x); /* the cotangent has period 1 */
        if (!(part != 0)) return NAN;
        value = -3.14159265358979323846 / tan(3.14159265358979323846 * part);
        x = 1 - x;
    }
    if (x < 1) {
        value -= 1 / x;
        x += 1;
    }
    if (x < 10) {
        while (x > 2) {
            x -= 1;
            value += 1 / x;
        }
        return value + digamma_near(x);
    }
    const double z = 1 / (x * x);
    return value + (log(x) - 0.5 / x - z * polynomial(DIGAMMA_FAR, 6, z));
}

/* (2 k)! / B(2 k), from k = 1 on */
TABLE ZETA_A[12] = {
    12.0, -720.0, 30240.0, -1209600.0, 47900160.0, -1.8924375803183791606e9, 7.47242496e10, -2.950130727918164224e12,
    1.1646782814350067249e14, -4.5979787224074726105e15, 1.8152105401943546773e17, -7.1661652561756670113e18
};

/* the sum of (q + k)**-s for s > 1 and q > 0, by Euler and Maclaurin, DLMF 2.10.1; for great q by DLMF 25.11.43 */
SPECIAL double hurwitz_zeta_right(double s, double q) {
    if (q > 1e8) return (1 / (s - 1) + 1 / (2 * q)) * pow(q, 1 - s);
    double sum = pow(q, -s), at = q, term = 0;
    for (int i = 0; i < 9 || at <= 9; i++) {
        at += 1;
        term = pow(at, -s);
        sum += term;
        if (term <= 1e-17 * sum) return sum;
    }
    sum += term * at / (s - 1) - term / 2;
    double factor = 1;
    for (int i = 0; i < 12; i++) {
        factor *= s + 2 * i;
        term /= at;
        const double rest = factor * term / ZETA_A[i];
        sum += rest;
        if (fabs(rest) <= 1e-17 * fabs(sum)) break;
        factor *= s + 2 * i + 1;
        term /= at;
    }
    return sum;
}

/* The sum of (q + k)**-s; for q < 0 and an integer s the terms on both sides of 0 are two such sums. */
SPECIAL double hurwitz_zeta(double s, double q) {
    if (s == 1) return INFINITY;
    if (s < 1 || q != q) return NAN;
    if (q <= 0 && q == floor(q)) return INFINITY; /* a term, of any power */
    if (s != s) return NAN;
    if (q > 0) return hurwitz_zeta_right(s, q);
    const double above = q - floor(q), below = ceil(q) - q;
    if (s == INFINITY) return INFINITY; /* a term between -1 and 1 */
    if (s != floor(s)) return NAN;
    const double left = hurwitz_zeta_right(s, below) - hurwitz_zeta_right(s, 1 - q);
    return hurwitz_zeta_right(s, above) + (fmod(s, 2) == 0 ? left : -left);
}
