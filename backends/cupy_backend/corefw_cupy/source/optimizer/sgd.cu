// Stochastic gradient descent; with a third array, the buffer, with momentum.

#include "optimizer/optimizer.cuh"

#ifndef ARRAYS // of each parameter
#define ARRAYS 3
#endif

// The first step finds nothing in the buffer. rate: the learning rate.
struct Sgd {
    Descent descent;
    A momentum, buffer_share;
    bool nesterov, first;

    __device__ void step(A *x, const A *rate) const
    {
        A step = descent.of(x);
        if (ARRAYS == 3) {
            A &buffer = x[ARRAYS - 1];
            buffer = first ? step : momentum * buffer + buffer_share * step;
            step = nesterov ? step + momentum * buffer : buffer;
        }
        x[0] -= rate[0] * step;
    }
};

extern "C" __global__ void sgd_step(Table<ARRAYS, 1> table, const double *rates, Step s)
{
    update(table, rates, Sgd{s, (A)s.momentum, (A)(1 - s.dampening), s.nesterov, s.first});
}
