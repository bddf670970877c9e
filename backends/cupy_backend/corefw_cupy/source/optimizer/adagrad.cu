// Adagrad and Adadelta.

#include "optimizer/optimizer.cuh"

// rate: the step size.
struct Adagrad {
    Descent descent;
    A eps;

    __device__ void step(A *x, const A *rate) const
    {
        A d = descent.of(x);
        x[2] += d * d;
        x[0] -= rate[0] * (d / (sqrt(x[2]) + eps));
    }
};

// rate: the learning rate.
struct Adadelta {
    Descent descent;
    Mean square;
    A eps;

    __device__ void step(A *x, const A *rate) const
    {
        A d = descent.of(x), s = square.follow_square(x[2], d);
        A delta = sqrt(x[3] + eps) / sqrt(s + eps) * d;
        square.follow_square(x[3], delta);
        x[0] -= rate[0] * delta;
    }
};

extern "C" __global__ void adagrad_step(Table<3, 1> table, const double *rates, Step s)
{
    update(table, rates, Adagrad{s, (A)s.eps});
}

extern "C" __global__ void adadelta_step(Table<4, 1> table, const double *rates, Step s)
{
    update(table, rates, Adadelta{s, s.rho, (A)s.eps});
}
