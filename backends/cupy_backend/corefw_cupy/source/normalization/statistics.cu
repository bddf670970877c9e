// Variances, by B. P. Welford's recurrence and its form for groups by T. F. Chan, G. H. Golub and R. J. LeVeque (1983).

#include "core/operation.cuh"
#include "core/mathematics.cuh"

template <class Real> __device__ Real inner_product(Real x, Real y)
{
    return x * y;
}
template <class Real> __device__ Real inner_product(Complex<Real> x, Complex<Real> y)
{
    return x.re * y.re + x.im * y.im;
}

template <class Value> struct Moments {
    decltype(inner_product(Value(), Value())) count;
    Value mean;
    decltype(inner_product(Value(), Value())) squares; // of the distances from the mean, summed
};

// The type of variances of elements.
template <class Element> struct RealResult {
    typedef Element type;
};
template <class Real> struct RealResult<Complex<Real>> {
    typedef Real type;
};

struct Variance : Placeless {
    typedef Compute<T>::type Value;
    typedef Moments<Value> State;
    typedef decltype(inner_product(Value(), Value())) Real;
    typedef RealResult<T>::type Result;

    __device__ static State neutral() { return {0, Value(0), 0}; }

    __device__ static void add(State &state, T element, int64, double)
    {
        Value x = Value(element), distance = x - state.mean;
        state.count += 1;
        state.mean = state.mean + distance * Value(1 / state.count);
        state.squares += inner_product(distance, x - state.mean);
    }

    __device__ static State of(State a, State b)
    {
        Real count = a.count + b.count, share = count == 0 ? Real(0) : b.count / count;
        Value distance = b.mean - a.mean;
        return {count, a.mean + distance * Value(share),
                a.squares + b.squares + inner_product(distance, distance) * a.count * share};
    }

    __device__ static Result result(State state, int64 count, double correction)
    {
        return Real(state.squares / Real(fmax(count - correction, 0.0)));
    }
};

struct Deviation : Variance {
    __device__ static Result result(State state, int64 count, double correction)
    {
        return Real(sqrt(state.squares / Real(fmax(count - correction, 0.0))));
    }
};

#include "reduction/reduction.cuh"
