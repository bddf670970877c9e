/* The complement of the error function without its exponential, and the logarithm of the normal distribution function. */

/* exp(x**2) erfc(x); beyond 26, where one factor overflows, DLMF 7.12.1 */
SPECIAL double scaled_erfc(double x) {
    if (x < -27) return INFINITY;
    if (x > 26) {
        const double z = 1 / (2 * x * x);
        const double series = 1 - z * (1 - 3 * z * (1 - 5 * z * (1 - 7 * z * (1 - 9 * z * (1 - 11 * z)))));
        return series / (x * 1.77245385090551602730);
    }
    const double coarse = (float)x; /* whose square is exact */
    return exp(coarse * coarse) * (exp((x - coarse) * (x + coarse)) * erfc(x));
}

SPECIAL double log_ndtr(double x) {
    const double t = x * -0.70710678118654752440;
    return t > 0.70710678118654752440 ? log(scaled_erfc(t) / 2) - t * t : log1p(erfc(-t) / -2);
}
