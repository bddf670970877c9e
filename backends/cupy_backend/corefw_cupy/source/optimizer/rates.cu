// The rates of optimizer steps where the learning rate or the counts of steps lie on the device: a graph that is replayed
// finds there what a launch would otherwise be given as numbers. A thread for each tensor.

#include "optimizer/parameters.cuh"

// The first rate of each tensor is the learning rate; the second one is given.
extern "C" __global__ void sgd_rates(Table<0, 1> first, int64 n, double *rates, const double *lr)
{
    int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    rates[2 * i] = *lr;
    rates[2 * i + 1] = first.rate(0, i);
}

// Each tensor's count of steps goes on by one. The learning rate is `lr`, or `*changing` if that is given.
extern "C" __global__ void adam_rates(Table<1, 0> counts, int64 n, double *rates, double lr, const double *changing,
                                      double mean_rate, double square_rate, double decoupled_decay)
{
    int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    double rate = changing ? *changing : lr, t = *counts.array(0, i) += 1;
    rates[3 * i] = rate / (1 - pow(mean_rate, t));
    rates[3 * i + 1] = sqrt(1 - pow(square_rate, t));
    rates[3 * i + 2] = 1 - rate * decoupled_decay;
}
