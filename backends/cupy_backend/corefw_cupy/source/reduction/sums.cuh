// Sums and products, of which reductions and scans are made.

#include "core/operation.cuh"
#include "core/mathematics.cuh"

// The type of sums as results: int64 for integers, else that of the elements.
template <class Element, class Total = typename Sum<Element>::type> struct SumResult {
    typedef Element type;
};
template <class Element> struct SumResult<Element, int64> {
    typedef int64 type;
};
template <class Element> struct SumResult<Element, uint64> {
    typedef int64 type;
};

struct Total : Placeless {
    typedef Sum<T>::type State;
    typedef SumResult<T>::type Result;
    __device__ static State neutral() { return 0; }
    __device__ static void add(State &state, T x, int64, double) { state = state + State(x); }
    __device__ static State of(State a, State b) { return a + b; }
    __device__ static Result result(State state, int64, double) { return state; }
};

struct Product : Total {
    __device__ static State neutral() { return 1; }
    __device__ static void add(State &state, T x, int64, double) { state = state * State(x); }
    __device__ static State of(State a, State b) { return a * b; }
};
