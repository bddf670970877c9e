// Moments of some elements, and how those of two groups are joined: T. F. Chan, G. H. Golub and R. J. LeVeque, "Algorithms
// for computing the sample variance" (1983).

#include "core/types.cuh"

template <class Real> __device__ Real inner_product(Real x, Real y)
{
    return x * y;
}

// How many elements there are, their mean, and the sum of their squared distances from it.
template <class Value> struct Moments {
    decltype(inner_product(Value(), Value())) count;
    Value mean;
    decltype(inner_product(Value(), Value())) squares;
};

struct Join {
    // The distance of equal means is 0, and a mean of no elements has no weight before it is squared: inf * 0 is no 0.
    template <class Value> __device__ static Moments<Value> of(Moments<Value> a, Moments<Value> b)
    {
        auto count = a.count + b.count, share = count == 0 ? count : b.count / count, weight = a.count * share;
        Value distance = b.mean - a.mean;
        return {count, a.mean + distance * Value(share),
                a.squares + b.squares + inner_product(distance * Value(weight), distance)};
    }
};
