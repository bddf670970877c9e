// RMSprop.

#include "optimizer/optimizer.cuh"

#ifndef ARRAYS // of each parameter
#define ARRAYS 3
#endif

// After the mean squares come, as there are any, the means and then the momentum buffers. rate: the learning rate.
struct Rmsprop {
    Descent descent;
    Mean mean;
    A momentum, eps;
    bool centered;

    __device__ void step(A *x, const A *rate) const
    {
        A d = descent.of(x), s = mean.follow_square(x[2], d);
        if (ARRAYS > 3 && centered) {
            A m = mean.follow(x[ARRAYS > 3 ? 3 : 2], d);
            s -= m * m;
        }
        A step = d / (sqrt(s) + eps);
        if (momentum != 0)
            step = x[ARRAYS - 1] = momentum * x[ARRAYS - 1] + step;
        x[0] -= rate[0] * step;
    }
};

extern "C" __global__ void rmsprop_step(Table<ARRAYS, 1> table, const double *rates, Step s)
{
    update(table, rates, Rmsprop{s, s.alpha, (A)s.momentum, (A)s.eps, s.centered});
}
