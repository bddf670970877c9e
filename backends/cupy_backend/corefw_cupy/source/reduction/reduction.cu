// Sums, products and logical summaries.

#include "reduction/sums.cuh"

struct Mean : Total {
    __device__ static Result result(State state, int64 count, double) { return state / State(count); }
};

// NaN counts as zero.
struct TotalOfNumbers : Total {
    __device__ static void add(State &state, T x, int64, double)
    {
        State value = State(x);
        state = state + (value == value ? value : State(0));
    }
};

// The type of results that are true or false: bool, and uint8 for itself.
template <class Element> struct Truth {
    typedef bool type;
};
template <> struct Truth<uint8> {
    typedef uint8 type;
};

struct All : Placeless {
    typedef int32 State;
    typedef Truth<T>::type Result;
    __device__ static State neutral() { return 1; }
    __device__ static void add(State &state, T x, int64, double) { state &= converted<bool>(x); }
    __device__ static State of(State a, State b) { return a & b; }
    __device__ static Result result(State state, int64, double) { return state; }
};

struct Any : All {
    __device__ static State neutral() { return 0; }
    __device__ static void add(State &state, T x, int64, double) { state |= converted<bool>(x); }
    __device__ static State of(State a, State b) { return a | b; }
};

struct Nonzero : Placeless {
    typedef int64 State;
    typedef int64 Result;
    __device__ static State neutral() { return 0; }
    __device__ static void add(State &state, T x, int64, double) { state += converted<bool>(x); }
    __device__ static State of(State a, State b) { return a + b; }
    __device__ static Result result(State state, int64, double) { return state; }
};

#include "reduction/reduction.cuh"
