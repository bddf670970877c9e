// Variances, by B. P. Welford's recurrence.

#include "core/operation.cuh"
#include "core/mathematics.cuh"
#include "normalization/moments.cuh"

template <class Real> __device__ Real inner_product(Complex<Real> x, Complex<Real> y)
{
    return x.re * y.re + x.im * y.im;
}

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

    __device__ static State of(State a, State b) { return Join::of(a, b); }

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
