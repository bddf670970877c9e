// What optimizer steps are made of. In each, x[0] is an element of a parameter, x[1] of its gradient, and the others of
// its state.

#include "optimizer/parameters.cuh"
#include "optimizer/step.cuh"

// The gradient to follow: signed, with the weight decay added, unless that is decoupled: it shrinks the parameter before.
struct Descent {
    A decay;
    bool maximize;

    __device__ Descent(const Step &s) : decay(s.decoupled_weight_decay ? 0 : s.weight_decay), maximize(s.maximize) {}
    __device__ A of(const A *x) const
    {
        A gradient = maximize ? -x[1] : x[1];
        return decay != 0 ? gradient + decay * x[0] : gradient;
    }
};

// A running mean that keeps the share `rate`, of numbers or of their squares.
struct Mean {
    A rate, share;

    __device__ Mean(double rate) : rate(rate), share(1 - rate) {}
    __device__ A follow(A &mean, A x) const { return mean += share * (x - mean); }
    __device__ A follow_square(A &mean, A x) const { return mean = rate * mean + share * (x * x); }
};

// What Adam and its kin keep of gradients: running means, of them and of their squares.
struct Moments {
    Descent descent;
    Mean mean, square;
    A eps;
};

// The larger one; NaN if one is.
__device__ inline A larger(A a, A b)
{
    return a > b || a != a ? a : b;
}
