// What optimizer steps are made of. In each, x[0] is an element of a parameter, x[1] of its gradient, and the others of
// its state.

#include "optimizer/parameters.cuh"

// The gradient to follow: signed, with the weight decay added. Decoupled decay shrinks the parameter before.
struct Descent {
    A decay, shrinkage;
    bool maximize;

    __device__ Descent(double decay, double shrinkage, bool maximize)
        : decay(decay), shrinkage(shrinkage), maximize(maximize)
    {
    }
    __device__ A of(A *x) const
    {
        x[0] *= shrinkage;
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

// The larger one; NaN if one is.
__device__ inline A larger(A a, A b)
{
    return a > b || a != a ? a : b;
}
