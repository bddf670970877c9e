// Adam; with a fifth array, the largest mean squares, AMSGrad.

#include "optimizer/optimizer.cuh"

#ifndef ARRAYS // of each parameter
#define ARRAYS 4
#endif

// rate: the step size, the correction of the root of the mean square, and what the parameter shrinks to.
struct Adam : Moments {
    __device__ void step(A *x, const A *rate) const
    {
        x[0] *= rate[2];
        A d = descent.of(x), m = mean.follow(x[2], d), s = square.follow_square(x[3], d);
        if (ARRAYS == 5)
            s = x[ARRAYS - 1] = larger(x[ARRAYS - 1], s);
        x[0] -= rate[0] * (m / (sqrt(s) / rate[1] + eps));
    }
};

extern "C" __global__ void adam_step(Table<ARRAYS, 3> table, const double *rates, Step s)
{
    update(table, rates, Adam{s, s.beta1, s.beta2, (A)s.eps});
}
