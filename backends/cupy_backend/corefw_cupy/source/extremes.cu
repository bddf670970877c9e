// Largest and smallest elements.

#include "extremes.cuh"

// NaN wins.
struct Largest {
    typedef Word<T>::type State;
    typedef T Result;
    __device__ static State neutral() { return Bounds<State>::least(); }
    __device__ static void add(State &state, T x, int64) { state = of(x, state); }
    __device__ static State of(State a, State b) { return a > b || a != a ? a : b; }
    __device__ static Result result(State state, int64, double) { return state; }
};

struct Smallest : Largest {
    __device__ static State neutral() { return Bounds<State>::most(); }
    __device__ static void add(State &state, T x, int64) { state = of(x, state); }
    __device__ static State of(State a, State b) { return a < b || a != a ? a : b; }
};

#include "reduction.cuh"
