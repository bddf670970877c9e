/* Bessel functions of orders 0 and 1, by the rational approximations of j0.c and j1.c of the
 * Cephes Math Library 2.8, copyright 1984-2000 by Stephen L. Moshier: on [0, 5] with the first two zeros as factors, from there on
 * sqrt(2 / (pi x)) (P cos(x - phase) - Q sin(x - phase)) in 25 / x**2. The phase is taken off by the addition theorem,
 * which loses nothing for large x. */

TABLE J0_NEAR_P[4] = {
    -4.79443220978201773821e9, 1.95617491946556577543e12, -2.49248344360967716204e14, 9.70862251047306323952e15
};
TABLE J0_NEAR_Q[9] = {
    1.0, 4.99563147152651017219e2, 1.73785401676374683123e5, 4.84409658339962045305e7, 1.11855537045356834862e10,
    2.11277520115489217587e12, 3.10518229857422583814e14, 3.18121955943204943306e16, 1.71086294081043136091e18
};
TABLE Y0_NEAR_P[8] = {
    1.55924367855235737965e4, -1.46639295903971606143e7, 5.43526477051876500413e9, -9.82136065717911466409e11,
    8.75906394395366999549e13, -3.46628303384729719441e15, 4.42733268572569800351e16, -1.84950800436986690637e16
};
TABLE Y0_NEAR_Q[8] = {
    1.0, 1.04128353664259848412e3, 6.26107330137134956842e5, 2.68919633393814121987e8, 8.64002487103935000337e10,
    2.02979612750105546709e13, 3.17157752842975028269e15, 2.50596256172653059228e17
};
TABLE P0_P[7] = {
    7.96936729297347051624e-4, 8.28352392107440799803e-2, 1.23953371646414299388e0, 5.44725003058768775090e0,
    8.74716500199817011941e0, 5.30324038235394892183e0, 9.99999999999999997821e-1
};
TABLE P0_Q[7] = {
    9.24408810558863637013e-4, 8.56288474354474431428e-2, 1.25352743901058953537e0, 5.47097740330417105182e0,
    8.76190883237069594232e0, 5.30605288235394617618e0, 1.00000000000000000218e0
};
TABLE Q0_P[8] = {
    -1.13663838898469149931e-2, -1.28252718670509318512e0, -1.95539544257735972385e1, -9.32060152123768231369e1,
    -1.77681167980488050595e2, -1.47077505154951170175e2, -5.14105326766599330220e1, -6.05014350600728481186e0
};
TABLE Q0_Q[8] = {
    1.0, 6.43178256118178023184e1, 8.56430025976980587198e2, 3.88240183605401609683e3, 7.24046774195652478189e3,
    5.93072701187316984827e3, 2.06209331660327847417e3, 2.42005740240291393179e2
};

TABLE J1_NEAR_P[4] = {
    -8.99971225705559398224e8, 4.52228297998194034323e11, -7.27494245221818276015e13, 3.68295732863852883286e15
};
TABLE J1_NEAR_Q[9] = {
    1.0, 6.20836478118054335476e2, 2.56987256757748830383e5, 8.35146791431949253037e7, 2.21511595479792499675e10,
    4.74914122079991414898e12, 7.84369607876235854894e14, 8.95222336184627338078e16, 5.32278620332680085395e18
};
TABLE Y1_NEAR_P[6] = {
    1.26320474790178026440e9, -6.47355876379160291031e11, 1.14509511541823727583e14, -8.12770255501325109621e15,
    2.02439475713594898196e17, -7.78877196265950026825e17
};
TABLE Y1_NEAR_Q[9] = {
    1.0, 5.94301592346128195359e2, 2.35564092943068577943e5, 7.34811944459721705660e7, 1.87601316108706159478e10,
    3.88231277496238566008e12, 6.20557727146953693363e14, 6.87141087355300489866e16, 3.97270608116560655612e18
};
TABLE P1_P[7] = {
    7.62125616208173112003e-4, 7.31397056940917570436e-2, 1.12719608129684925192e0, 5.11207951146807644818e0,
    8.42404590141772420927e0, 5.21451598682361504063e0, 1.00000000000000000254e0
};
TABLE P1_Q[7] = {
    5.71323128072548699714e-4, 6.88455908754495404082e-2, 1.10514232634061696926e0, 5.07386386128601488557e0,
    8.39985554327604159757e0, 5.20982848682361821619e0, 9.99999999999999997461e-1
};
TABLE Q1_P[8] = {
    5.10862594750176621635e-2, 4.98213872951233449420e0, 7.58238284132545283818e1, 3.66779609360150777800e2,
    7.10856304998926107277e2, 5.97489612400613639965e2, 2.11688757100572135698e2, 2.52070205858023719784e1
};
TABLE Q1_Q[8] = {
    1.0, 7.42373277035675149943e1, 1.05644886038262816351e3, 4.98641058337653607651e3, 9.56231892404756170795e3,
    7.99704160447350683650e3, 2.82619278517639096600e3, 3.36093607810698293419e2
};

#define ONE_BY_ROOT_PI 0.56418958354775628695
#define TWO_BY_PI 0.63661977236758134308

SPECIAL double bessel_j0(double x) {
    x = fabs(x);
    if (x <= 5) {
        const double z = x * x, zero = 2.404825557695773, rest = -1.1766916515308941e-16; /* zero + rest is J0's first */
        const double zeros = (x - zero - rest) * (x + zero + rest) * (z - 30.4712623436620863991);
        return x < 1e-5 ? 1 - z / 4 : zeros * (polynomial(J0_NEAR_P, 3, z) / polynomial(J0_NEAR_Q, 8, z));
    }
    const double z = 25 / (x * x), c = cos(x), s = sin(x);
    const double p = polynomial(P0_P, 6, z) / polynomial(P0_Q, 6, z);
    const double q = 5 / x * (polynomial(Q0_P, 7, z) / polynomial(Q0_Q, 7, z));
    return (p * (c + s) - q * (s - c)) * ONE_BY_ROOT_PI / sqrt(x);
}

SPECIAL double bessel_y0(double x) {
    if (!(x > 0)) return x == 0 ? -INFINITY : NAN;
    if (x <= 5) {
        const double z = x * x;
        return polynomial(Y0_NEAR_P, 7, z) / polynomial(Y0_NEAR_Q, 7, z) + TWO_BY_PI * log(x) * bessel_j0(x);
    }
    const double z = 25 / (x * x), c = cos(x), s = sin(x);
    const double p = polynomial(P0_P, 6, z) / polynomial(P0_Q, 6, z);
    const double q = 5 / x * (polynomial(Q0_P, 7, z) / polynomial(Q0_Q, 7, z));
    return (p * (s - c) + q * (c + s)) * ONE_BY_ROOT_PI / sqrt(x);
}

SPECIAL double bessel_j1(double x) {
    const double size = fabs(x);
    if (size <= 5) {
        const double z = x * x, zero = 3.8317059702075125, rest = -1.5269184090088067e-16; /* zero + rest is J1's first */
        const double zeros = (size - zero - rest) * (size + zero + rest) * (z - 49.2184563216946036703);
        return polynomial(J1_NEAR_P, 3, z) / polynomial(J1_NEAR_Q, 8, z) * x * zeros;
    }
    const double z = 25 / (x * x), c = cos(size), s = sin(size);
    const double p = polynomial(P1_P, 6, z) / polynomial(P1_Q, 6, z);
    const double q = 5 / size * (polynomial(Q1_P, 7, z) / polynomial(Q1_Q, 7, z));
    const double value = (p * (s - c) + q * (c + s)) * ONE_BY_ROOT_PI / sqrt(size);
    return x < 0 ? -value : value;
}

SPECIAL double bessel_y1(double x) {
    if (!(x > 0)) return x == 0 ? -INFINITY : NAN;
    if (x <= 5) {
        const double z = x * x, ratio = polynomial(Y1_NEAR_P, 5, z) / polynomial(Y1_NEAR_Q, 8, z);
        return x * ratio + TWO_BY_PI * (bessel_j1(x) * log(x) - 1 / x);
    }
    const double z = 25 / (x * x), c = cos(x), s = sin(x);
    const double p = polynomial(P1_P, 6, z) / polynomial(P1_Q, 6, z);
    const double q = 5 / x * (polynomial(Q1_P, 7, z) / polynomial(Q1_Q, 7, z));
    return (q * (s - c) - p * (c + s)) * ONE_BY_ROOT_PI / sqrt(x);
}
