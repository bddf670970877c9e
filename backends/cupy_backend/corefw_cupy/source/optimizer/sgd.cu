// Stochastic gradient descent; with a third array, the buffer, with momentum.

#include "optimizer/optimizer.cuh"

#ifndef ARRAYS // of each parameter
#define ARRAYS 3
#endif

// rate: the step size, and whether this is the first step, which finds nothing in the buffer.
struct Sgd {
    Descent descent;
    A momentum, buffer_share;
    bool nesterov;

    __device__ void step(A *x, const A *rate) const
    {
        A step = descent.of(x);
        if (ARRAYS == 3) {
            A &buffer = x[ARRAYS - 1];
            buffer = rate[1] != 0 ? step : momentum * buffer + buffer_share * step;
            step = nesterov ? step + momentum * buffer : buffer;
        }
        x[0] -= rate[0] * step;
    }
};

extern "C" __global__ void sgd_step(Table<ARRAYS, 2> table, const double *rates, double momentum, double dampening,
                                    double decay, bool nesterov, bool maximize)
{
    update(table, rates, Sgd{{decay, 1, maximize}, (A)momentum, (A)(1 - dampening), nesterov});
}
