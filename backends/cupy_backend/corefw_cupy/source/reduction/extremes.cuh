// Extremes and where they are found, of which reductions and scans are made. NaN is an extreme of both kinds.

#include "core/operation.cuh"

// The type of computation, of a whole number of words; for integers one that holds all their values.
template <class Element> struct Word {
    typedef typename Compute<Element>::type type;
};
template <> struct Word<bool> {
    typedef int32 type;
};
template <> struct Word<int8> {
    typedef int32 type;
};
template <> struct Word<uint8> {
    typedef int32 type;
};
template <> struct Word<int16> {
    typedef int32 type;
};
template <> struct Word<uint16> {
    typedef int32 type;
};

// The least and the greatest number of a type; for floating ones the infinities.
template <class Number> struct Bounds {
    static const bool is_signed = Number(-1) < Number(0);
    static const Number greatest = is_signed ? ~(Number(1) << (8 * sizeof(Number) - 1)) : Number(-1);
    __device__ static Number least() { return ~greatest; }
    __device__ static Number most() { return greatest; }
};
template <> struct Bounds<float> {
    __device__ static float least() { return -INFINITY; }
    __device__ static float most() { return INFINITY; }
};
template <> struct Bounds<double> {
    __device__ static double least() { return -INFINITY; }
    __device__ static double most() { return INFINITY; }
};

// Whether `a` comes before `b` in the order of the largest first, or the smallest.
struct Larger {
    template <class Number> __device__ static bool before(Number a, Number b) { return a > b; }
    template <class Number> __device__ static Number last() { return Bounds<Number>::least(); }
};
struct Smaller {
    template <class Number> __device__ static bool before(Number a, Number b) { return a < b; }
    template <class Number> __device__ static Number last() { return Bounds<Number>::most(); }
};

template <class Value> struct Found {
    Value value;
    int64 place;
};

// The extreme element, and of equal ones the first or the last.
template <class Order, bool first> struct Placed {
    typedef Found<Word<T>::type> State;
    typedef T Result;

    __device__ static State neutral()
    {
        return {Order::template last<Word<T>::type>(), first ? Bounds<int64>::most() : -1};
    }

    __device__ static State of(State a, State b)
    {
        bool earlier = first ? a.place < b.place : a.place > b.place;
        if (a.value != a.value)
            return b.value != b.value && !earlier ? b : a;
        if (a.value == b.value)
            return earlier ? a : b;
        return Order::before(a.value, b.value) ? a : b;
    }

    __device__ static void add(State &state, T x, int64 place, double) { state = of(state, {Word<T>::type(x), place}); }
    __device__ static Result result(State state, int64, double) { return state.value; }
    __device__ static int64 place(State state) { return state.place; }
};
