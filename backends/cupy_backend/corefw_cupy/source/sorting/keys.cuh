// Unsigned integers that are ordered as the elements of a type: NaN last, both zeros alike.

#include "core/types.cuh"

template <int size> struct KeyOf;
template <> struct KeyOf<1> {
    typedef uint8 type;
};
template <> struct KeyOf<2> {
    typedef uint16 type;
};
template <> struct KeyOf<4> {
    typedef uint32 type;
};
template <> struct KeyOf<8> {
    typedef uint64 type;
};

template <class Number> __device__ typename KeyOf<sizeof(Number)>::type sort_key(Number number, bool descending)
{
    typedef typename KeyOf<sizeof(Number)>::type Key;
    const bool floating = (float)Number(0.5f) == 0.5f, has_sign = Number(-1) < Number(0);
    const Key sign = Key(1) << (8 * sizeof(Key) - 1);
    union {
        Number number;
        Key key;
    } bits;
    bits.number = floating && number == Number(0) ? Number(0) : number;
    Key key = bits.key;
    if (number != number)
        key = ~Key(0);
    else if (floating && key & sign)
        key = ~key;
    else if (has_sign)
        key ^= sign;
    return descending ? ~key : key;
}

// Where element `i` of a row lies: rows have `n` elements, each `inner` elements behind the one before.
__device__ inline int64 in_row(int64 row, int64 i, int64 n, int64 inner)
{
    return (row / inner * n + i) * inner + row % inner;
}
