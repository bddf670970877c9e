// Stochastic gradient descent; with a third array, the buffer, with momentum.

#include "optimizer/optimizer.cuh"

#ifndef ARRAYS // of each parameter
#define ARRAYS 3
#endif

// rate: whether this is the first step, which finds nothing in the buffer.
struct Sgd {
    Descent descent;
    A lr, momentum, buffer_share;
    bool nesterov;

    __device__ void step(A *x, const A *rate) const
    {
        A step = descent.of(x);
        if (ARRAYS == 3) {
            A &buffer = x[ARRAYS - 1];
            buffer = rate[0] != 0 ? step : momentum * buffer + buffer_share * step;
            step = nesterov ? step + momentum * buffer : buffer;
        }
        x[0] -= lr * step;
    }
};

extern "C" __global__ void sgd_step(Table<ARRAYS, 1> table, double lr, double momentum, double dampening, double decay,
                                    bool nesterov, bool maximize)
{
    update(table, Sgd{{decay, 1, maximize}, (A)lr, (A)momentum, (A)(1 - dampening), nesterov});
}
