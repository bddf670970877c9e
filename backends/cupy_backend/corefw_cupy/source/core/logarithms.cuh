// Logarithms of sums of exponentials, without overflow: what is summed is relative to the largest so far.

#include "core/operation.cuh"
#include "core/mathematics.cuh"

template <class Real> __device__ Real real_part(Real x)
{
    return x;
}
template <class Real> __device__ Real real_part(Complex<Real> x)
{
    return x.re;
}

// exp(x - real_part(x)), for infinite numbers too.
template <class Real> __device__ Real phase(Real x)
{
    return 1;
}
template <class Real> __device__ Complex<Real> phase(Complex<Real> x)
{
    return {cos(x.im), sin(x.im)};
}

template <class Value> struct Exponentials {
    decltype(real_part(Value())) largest;
    Value sum; // of exp(x - largest); where `largest` is infinite, of the elements that are as large
};

struct LogSumExp : Placeless {
    typedef Compute<T>::type Value;
    typedef Exponentials<Value> State;
    typedef decltype(real_part(Value())) Real;
    typedef T Result;

    __device__ static State neutral() { return {Real(-INFINITY), Value(0)}; }

    // exp(x - largest)
    __device__ static Value relative(Value x, Real largest)
    {
        return real_part(x) == largest ? phase(x) : exp(x - Value(largest));
    }

    __device__ static void add(State &state, T element, int64, double)
    {
        Value x = Value(element);
        Real size = real_part(x);
        if (size <= state.largest) {
            if (size != Real(-INFINITY))
                state.sum = state.sum + relative(x, state.largest);
        } else if (size != size || state.largest != state.largest) {
            state = {Real(NAN), Value(Real(NAN))};
        } else {
            state = {size, state.sum * Value(exp(state.largest - size)) + relative(x, size)};
        }
    }

    __device__ static State of(State a, State b)
    {
        if (a.largest < b.largest || b.largest != b.largest) {
            State other = a;
            a = b;
            b = other;
        }
        if (b.largest == a.largest)
            return {a.largest, a.sum + b.sum};
        return {a.largest, a.sum + b.sum * Value(exp(b.largest - a.largest))};
    }

    __device__ static Result result(State state, int64, double)
    {
        Value logarithm = log(state.sum);
        return state.largest == Real(-INFINITY) ? logarithm : logarithm + Value(state.largest);
    }
};
