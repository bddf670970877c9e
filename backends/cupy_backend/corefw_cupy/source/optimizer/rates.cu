// The rates of optimizer steps where the learning rate or the counts of steps lie on the device: a graph that is replayed
// finds there what a launch would otherwise be given as numbers. A thread for each tensor.

#include "optimizer/parameters.cuh"
#include "optimizer/step.cuh"

// In each struct, `of` writes the `number` rates of one tensor, whose numbers it counts on.

struct Learning {
    static const int number = 1;

    __device__ static void of(double *rate, double lr, T *const *, const Step &) { *rate = lr; }
};

struct Counting {
    static const int number = 1;

    __device__ static void of(double *rate, double lr, T *const *counts, const Step &)
    {
        *counts[0] += 1;
        *rate = lr;
    }
};

struct Adagrad {
    static const int number = 1;

    __device__ static void of(double *rate, double lr, T *const *counts, const Step &s)
    {
        double t = *counts[0] += 1;
        *rate = lr / (1 + (t - 1) * s.lr_decay);
    }
};

struct Adamax {
    static const int number = 1;

    __device__ static void of(double *rate, double lr, T *const *counts, const Step &s)
    {
        double t = *counts[0] += 1;
        *rate = lr / (1 - pow(s.beta1, t));
    }
};

// What decoupled weight decay multiplies a parameter by.
__device__ inline double shrinkage(double lr, const Step &s)
{
    return s.decoupled_weight_decay ? 1 - lr * s.weight_decay : 1;
}

struct Adam {
    static const int number = 3;

    __device__ static void of(double *rate, double lr, T *const *counts, const Step &s)
    {
        double t = *counts[0] += 1;
        rate[0] = lr / (1 - pow(s.beta1, t));
        rate[1] = sqrt(1 - pow(s.beta2, t));
        rate[2] = shrinkage(lr, s);
    }
};

struct Nadam {
    static const int number = 4;

    __device__ static void of(double *rate, double lr, T *const *counts, const Step &s)
    {
        double t = *counts[1] += 1;
        double mu = s.beta1 * (1 - 0.5 * pow(0.96, t * s.momentum_decay));
        double mu_next = s.beta1 * (1 - 0.5 * pow(0.96, (t + 1) * s.momentum_decay));
        double product = *counts[0] *= (T)mu; // in its own precision
        rate[0] = lr * (1 - mu) / (1 - product);
        rate[1] = lr * mu_next / (1 - product * mu_next);
        rate[2] = 1 - pow(s.beta2, t);
        rate[3] = shrinkage(lr, s);
    }
};

struct Radam {
    static const int number = 3;

    __device__ static void of(double *rate, double lr, T *const *counts, const Step &s)
    {
        double t = *counts[0] += 1, kept = pow(s.beta2, t);
        double longest = 2 / (1 - s.beta2) - 1, length = longest - 2 * t * kept / (1 - kept);
        double squares = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length);
        rate[1] = length > 5; // before that the variance is not known well enough
        rate[0] = lr / (1 - pow(s.beta1, t)) * (length > 5 ? sqrt(squares) : 1) * (length > 5 ? sqrt(1 - kept) : 1);
        rate[2] = shrinkage(lr, s);
    }
};

// The rates of all tensors, one after another. The learning rate is `lr`, or `*changing` if that is given.
template <class Rates, int lists>
__device__ void fill(const Table<lists, 0> &table, int64 n, double *rates, double lr, const double *changing, const Step &s)
{
    int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    T *counts[lists + 1];
    for (int k = 0; k < lists; ++k)
        counts[k] = table.array(k, i);
    Rates::of(rates + Rates::number * i, changing ? *changing : lr, counts, s);
}

extern "C" __global__ void learning_rates(Table<0, 0> table, int64 n, double *rates, double lr,
                                          const double *changing, Step s)
{
    fill<Learning>(table, n, rates, lr, changing, s);
}

extern "C" __global__ void counting_rates(Table<1, 0> table, int64 n, double *rates, double lr,
                                          const double *changing, Step s)
{
    fill<Counting>(table, n, rates, lr, changing, s);
}

extern "C" __global__ void adagrad_rates(Table<1, 0> table, int64 n, double *rates, double lr,
                                         const double *changing, Step s)
{
    fill<Adagrad>(table, n, rates, lr, changing, s);
}

extern "C" __global__ void adamax_rates(Table<1, 0> table, int64 n, double *rates, double lr,
                                        const double *changing, Step s)
{
    fill<Adamax>(table, n, rates, lr, changing, s);
}

extern "C" __global__ void adam_rates(Table<1, 0> table, int64 n, double *rates, double lr,
                                      const double *changing, Step s)
{
    fill<Adam>(table, n, rates, lr, changing, s);
}

extern "C" __global__ void nadam_rates(Table<2, 0> table, int64 n, double *rates, double lr,
                                       const double *changing, Step s)
{
    fill<Nadam>(table, n, rates, lr, changing, s);
}

extern "C" __global__ void radam_rates(Table<1, 0> table, int64 n, double *rates, double lr,
                                       const double *changing, Step s)
{
    fill<Radam>(table, n, rates, lr, changing, s);
}
