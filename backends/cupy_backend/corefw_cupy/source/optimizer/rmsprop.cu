// RMSprop.

#include "optimizer/optimizer.cuh"

#ifndef ARRAYS // of each parameter
#define ARRAYS 3
#endif

// After the mean squares come, as there are any, the means and then the momentum buffers.
struct Rmsprop {
    Descent descent;
    Mean mean;
    A lr, momentum, eps;
    bool centered;

    __device__ void step(A *x, const A *) const
    {
        A d = descent.of(x), s = mean.follow_square(x[2], d);
        if (ARRAYS > 3 && centered) {
            A m = mean.follow(x[ARRAYS > 3 ? 3 : 2], d);
            s -= m * m;
        }
        A step = d / (sqrt(s) + eps);
        if (momentum != 0)
            step = x[ARRAYS - 1] = momentum * x[ARRAYS - 1] + step;
        x[0] -= lr * step;
    }
};

extern "C" __global__ void rmsprop_step(Table<ARRAYS, 0> table, const double *rates, double lr, double alpha, double eps, double decay,
                                        double momentum, bool centered, bool maximize)
{
    update(table, rates, Rmsprop{{decay, 1, maximize}, alpha, (A)lr, (A)momentum, (A)eps, centered});
}
