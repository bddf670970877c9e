/* Sums of which the special functions are made. */

/* a polynomial, coefficients from the highest power down */
SPECIAL double polynomial(const double *coefficients, int degree, double x) {
    double value = coefficients[0];
    for (int i = 1; i <= degree; i++) value = value * x + coefficients[i];
    return value;
}

/* a series of n Chebyshev polynomials of x / 2, from the highest degree down, the last one halved: Clenshaw's sum */
SPECIAL double chebyshev_sum(const double *coefficients, int n, double x) {
    double value = coefficients[0], last = 0, before = 0;
    for (int i = 1; i < n; i++) {
        before = last;
        last = value;
        value = x * last - before + coefficients[i];
    }
    return (value - before) / 2;
}
