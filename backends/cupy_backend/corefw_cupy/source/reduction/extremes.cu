// Largest and smallest elements, and where they are found first.

#include "reduction/extremes.cuh"

template <class Order> struct Extreme : Placeless {
    typedef Word<T>::type State;
    typedef T Result;
    __device__ static State neutral() { return Order::template last<State>(); }
    __device__ static void add(State &state, T x, int64, double) { state = of(x, state); }
    __device__ static State of(State a, State b) { return Order::before(a, b) || a != a ? a : b; }
    __device__ static Result result(State state, int64, double) { return state; }
};

typedef Extreme<Larger> Largest;
typedef Extreme<Smaller> Smallest;
typedef Placed<Larger, true> FirstLargest;
typedef Placed<Smaller, true> FirstSmallest;

#include "reduction/reduction.cuh"
