/* The parts of floating-point numbers, and products with powers of two. */

SPECIAL double mantissa_of(double x) {
    int exponent;
    return frexp(x, &exponent);
}

SPECIAL double exponent_of(double x) {
    int exponent = 0;
    if (!(fabs(x) < INFINITY)) return 0;
    (void)frexp(x, &exponent);
    return exponent;
}

SPECIAL double times_power_of_two(double x, double y) {
    for (int i = 0; i < 3; i++) { /* enough to cross the range, from its end among the subnormal numbers */
        const double step = y < -1022 ? -1022 : y > 1022 ? 1022 : y;
        x *= exp2(step);
        y -= step;
    }
    return x;
}
