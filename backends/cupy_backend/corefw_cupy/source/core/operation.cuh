// What operations of reductions and scans have in common.
//
// An operation has a State, which elements are added to and which is combined with others in any order, and the Result
// that is made of it in the end.

#include "core/types.cuh"

// An operation whose result is found at no place in particular.
struct Placeless {
    template <class State> __device__ static int64 place(State) { return 0; }
};
