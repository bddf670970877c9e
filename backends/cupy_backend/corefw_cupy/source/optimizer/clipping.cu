// What the clipping of gradients needs: the common norm of a list of tensors, and their scaling in place.

#include "optimizer/parameters.cuh"
#include "core/block.cuh"

#ifndef NORM // one of the classes below
#define NORM Euclidean
#endif

struct Smaller {
    template <class Number> __device__ static Number of(Number a, Number b) { return a < b || a != a ? a : b; }
};

// Norms of an order p: what an element of modulus x counts, how this is joined, and the norm that comes of it.
struct Euclidean {
    typedef Add Join;
    __device__ static double neutral() { return 0; }
    __device__ static double term(double x, double) { return x * x; }
    __device__ static double root(double sum, double) { return sqrt(sum); }
};
struct Moduli {
    typedef Add Join;
    __device__ static double neutral() { return 0; }
    __device__ static double term(double x, double) { return x; }
    __device__ static double root(double sum, double) { return sum; }
};
struct Nonzeros : Moduli {
    __device__ static double term(double x, double) { return x != 0; }
};
struct Largest : Moduli {
    typedef Greater Join;
};
struct Smallest : Moduli {
    typedef Smaller Join;
    __device__ static double neutral() { return INFINITY; }
};
struct Powers {
    typedef Add Join;
    __device__ static double neutral() { return 0; }
    __device__ static double term(double x, double p) { return pow(x, p); }
    __device__ static double root(double sum, double p) { return pow(sum, 1 / p); }
};

// What each block's elements count together.
extern "C" __global__ void norm_parts(Table<1, 0> table, double *parts, double p)
{
    const int width = 16 / sizeof(T);
    Chunk chunk(table);
    const T *data = table.array(0, chunk.tensor);
    bool even = aligned<width>(data);
    double part = NORM::neutral();
    for (int64 first = chunk.begin + threadIdx.x * width; first < chunk.end; first += blockDim.x * width) {
        T values[width];
        fetch(data, first, chunk.end, false, even && first + width <= chunk.end, values);
        for (int i = 0; i < width; ++i)
            if (first + i < chunk.end)
                part = NORM::Join::of(part, NORM::term(fabs((double)(A)values[i]), p));
    }
    part = combine_block<NORM::Join>(part, NORM::neutral());
    if (threadIdx.x == 0)
        parts[blockIdx.x] = part;
}

// The norm, by one block.
extern "C" __global__ void norm_of_parts(const double *parts, int64 n, T *out, double p)
{
    double sum = NORM::neutral();
    for (int64 i = threadIdx.x; i < n; i += blockDim.x)
        sum = NORM::Join::of(sum, parts[i]);
    sum = combine_block<NORM::Join>(sum, NORM::neutral());
    if (threadIdx.x == 0)
        *out = (A)NORM::root(sum, p);
}
