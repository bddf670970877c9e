// Optimizers that follow from Adam.

#include "optimizer/optimizer.cuh"

// rate: the step size.
struct Adamax {
    Descent descent;
    Mean mean;
    A norm_rate, eps;

    __device__ void step(A *x, const A *rate) const
    {
        A d = descent.of(x), m = mean.follow(x[2], d);
        x[3] = larger(norm_rate * x[3], fabs(d) + eps);
        x[0] -= rate[0] * (m / x[3]);
    }
};

// rate: the step sizes along the gradient and along the mean, the correction of the mean square, and what the parameter
// shrinks to.
struct Nadam : Moments {
    __device__ void step(A *x, const A *rate) const
    {
        x[0] *= rate[3];
        A d = descent.of(x), m = mean.follow(x[2], d), s = square.follow_square(x[3], d);
        A denominator = sqrt(s / rate[2]) + eps;
        x[0] = x[0] - rate[0] * (d / denominator) - rate[1] * (m / denominator);
    }
};

// rate: the step size, whether the mean square is known well enough to divide by its root, and what the parameter shrinks
// to.
struct Radam : Moments {
    __device__ void step(A *x, const A *rate) const
    {
        x[0] *= rate[2];
        A d = descent.of(x), m = mean.follow(x[2], d), s = square.follow_square(x[3], d);
        x[0] -= rate[0] * (rate[1] != 0 ? m / (sqrt(s) + eps) : m);
    }
};

extern "C" __global__ void adamax_step(Table<4, 1> table, const double *rates, Step s)
{
    update(table, rates, Adamax{s, s.beta1, (A)s.beta2, (A)s.eps});
}

extern "C" __global__ void nadam_step(Table<4, 4> table, const double *rates, Step s)
{
    update(table, rates, Nadam{s, s.beta1, s.beta2, (A)s.eps});
}

extern "C" __global__ void radam_step(Table<4, 3> table, const double *rates, Step s)
{
    update(table, rates, Radam{s, s.beta1, s.beta2, (A)s.eps});
}
