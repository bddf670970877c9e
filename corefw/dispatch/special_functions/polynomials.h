/* Orthogonal polynomials of degree n, which is cut to an integer, by their recurrences of three terms, DLMF 18.9; 0 for a
 * negative n. */

/* the greatest degree: the recurrence of a greater one would take long, and is NaN */
#define GREATEST_DEGREE 65536

/* the degree, one more than the greatest for those above it; -1 for what is none */
SPECIAL int degree_of(double n) { return n > -1 ? (n <= GREATEST_DEGREE ? (int)n : GREATEST_DEGREE + 1) : -1; }

/* the value where there is no recurrence to follow */
SPECIAL double without_recurrence(int degree) { return degree < 1 ? degree + 1 : NAN; }

/* Chebyshev polynomials: all kinds have one recurrence and differ in that of degree 1 */
SPECIAL double chebyshev(double first, double x, double n) {
    const int degree = degree_of(n);
    double before = 1, value = first;
    if (degree < 1 || degree > GREATEST_DEGREE) return without_recurrence(degree);
    for (int k = 1; k < degree && value == value; k++) {
        const double next = 2 * x * value - before;
        before = value;
        value = next;
    }
    return value;
}

SPECIAL double chebyshev_t(double x, double n) { return chebyshev(x, x, n); }
SPECIAL double chebyshev_u(double x, double n) { return chebyshev(2 * x, x, n); }
SPECIAL double chebyshev_v(double x, double n) { return chebyshev(2 * x - 1, x, n); }
SPECIAL double chebyshev_w(double x, double n) { return chebyshev(2 * x + 1, x, n); }

SPECIAL double hermite_h(double x, double n) {
    const int degree = degree_of(n);
    double before = 1, value = 2 * x;
    if (degree < 1 || degree > GREATEST_DEGREE) return without_recurrence(degree);
    for (int k = 1; k < degree && value == value; k++) {
        const double next = 2 * (x * value - k * before);
        before = value;
        value = next;
    }
    return value;
}

SPECIAL double hermite_he(double x, double n) {
    const int degree = degree_of(n);
    double before = 1, value = x;
    if (degree < 1 || degree > GREATEST_DEGREE) return without_recurrence(degree);
    for (int k = 1; k < degree && value == value; k++) {
        const double next = x * value - k * before;
        before = value;
        value = next;
    }
    return value;
}

SPECIAL double laguerre_l(double x, double n) {
    const int degree = degree_of(n);
    double before = 1, value = 1 - x;
    if (degree < 1 || degree > GREATEST_DEGREE) return without_recurrence(degree);
    for (int k = 1; k < degree && value == value; k++) {
        const double next = ((2.0 * k + 1 - x) * value - k * before) / (k + 1.0);
        before = value;
        value = next;
    }
    return value;
}

SPECIAL double legendre_p(double x, double n) {
    const int degree = degree_of(n);
    double before = 1, value = x;
    if (degree < 1 || degree > GREATEST_DEGREE) return without_recurrence(degree);
    for (int k = 1; k < degree && value == value; k++) {
        const double next = ((2.0 * k + 1) * x * value - k * before) / (k + 1.0);
        before = value;
        value = next;
    }
    return value;
}
