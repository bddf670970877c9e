// The elements of type T as keys in ascending order.

#include "sorting/keys.cuh"

typedef KeyOf<sizeof(T)>::type Key;

__device__ inline bool not_a_number(T x)
{
    return x != x;
}

__device__ inline Key key_of(T x)
{
    return sort_key(x, false);
}
