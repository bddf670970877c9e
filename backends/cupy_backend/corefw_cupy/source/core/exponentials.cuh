// Sums of exponentials, found in one pass and without overflow: the greatest exponent is kept apart.

#include "core/rows.cuh"

// total * exp(greatest)
struct Exponentials {
    A greatest, total;
};

__device__ inline Exponentials no_exponentials()
{
    return {A(-INFINITY), A(0)};
}

template <int count> __device__ void add(Exponentials &sum, const A (&exponents)[count])
{
    A greatest = sum.greatest;
    for (int k = 0; k < count; ++k)
        greatest = Greater::of(greatest, exponents[k]);
    if (greatest == A(-INFINITY))
        return;
    A total = sum.total * exp(sum.greatest - greatest);
    for (int k = 0; k < count; ++k)
        total += exp(exponents[k] - greatest);
    sum = {greatest, total};
}

// What a sum adds to one whose greatest exponent is given.
__device__ inline A rescaled(Exponentials sum, A greatest)
{
    return sum.greatest == A(-INFINITY) ? A(0) : sum.total * exp(sum.greatest - greatest);
}

// The sums of all lanes of a row.
__device__ inline Exponentials combined(Exponentials own, int lanes)
{
    A greatest = combine_lanes<Greater>(own.greatest, A(-INFINITY), lanes);
    return {greatest, combine_lanes<Add>(rescaled(own, greatest), A(0), lanes)};
}

// The sums of all threads of a column.
__device__ inline Exponentials combined_column(Exponentials own, int width)
{
    A greatest = combine_column<Greater>(own.greatest, width);
    return {greatest, combine_column<Add>(rescaled(own, greatest), width)};
}

// The sum over the elements of a row from `begin` to `end` that fall to one of several lanes.
__device__ inline Exponentials scan(const T *row, int64 begin, int64 end, int lane, int lanes, bool packed)
{
    Exponentials sum = no_exponentials();
    walk(begin, end, lane, lanes, packed, [&](auto several, int64 at) {
        A exponents[decltype(several)::count];
        read<decltype(several)::count>(row + at, exponents);
        add(sum, exponents);
    });
    return sum;
}
