// Norms: sums, roots and extremes of moduli.

#include "core/operation.cuh"
#include "core/mathematics.cuh"

template <class Element> struct Modulus {
    typedef Element type; // of results
    typedef typename Compute<Element>::type State;
    __device__ static State of(Element x) { return fabs(State(x)); }
    __device__ static State squared(Element x) { return State(x) * State(x); }
};
template <class Real> struct Modulus<Complex<Real>> {
    typedef Real type;
    typedef Real State;
    __device__ static Real of(Complex<Real> x) { return abs(x); }
    __device__ static Real squared(Complex<Real> x) { return x.re * x.re + x.im * x.im; }
};

struct Moduli : Placeless {
    typedef Modulus<T>::State State;
    typedef Modulus<T>::type Result;
    __device__ static State neutral() { return 0; }
    __device__ static void add(State &state, T x, int64, double) { state += Modulus<T>::of(x); }
    __device__ static State of(State a, State b) { return a + b; }
    __device__ static Result result(State state, int64, double) { return state; }
};

struct Euclidean : Moduli {
    __device__ static void add(State &state, T x, int64, double) { state += Modulus<T>::squared(x); }
    __device__ static Result result(State state, int64, double) { return sqrt(state); }
};

struct NonzeroModuli : Moduli {
    __device__ static void add(State &state, T x, int64, double) { state += Modulus<T>::of(x) != 0; }
};

struct LargestModulus : Moduli {
    __device__ static void add(State &state, T x, int64, double) { state = of(Modulus<T>::of(x), state); }
    __device__ static State of(State a, State b) { return a > b || a != a ? a : b; }
};

struct SmallestModulus : Moduli {
    __device__ static State neutral() { return INFINITY; }
    __device__ static void add(State &state, T x, int64, double) { state = of(Modulus<T>::of(x), state); }
    __device__ static State of(State a, State b) { return a < b || a != a ? a : b; }
};

struct Powers : Moduli {
    __device__ static void add(State &state, T x, int64, double order)
    {
        state += pow(Modulus<T>::of(x), State(order));
    }
    __device__ static Result result(State state, int64, double order) { return pow(state, State(1 / order)); }
};

#include "reduction/reduction.cuh"
