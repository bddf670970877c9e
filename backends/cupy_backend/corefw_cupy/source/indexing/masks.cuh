// The true elements of a mask in order: how many each block has, and what is done with each.

#include "sorting/ranks.cuh"

#define MARKS 8 // elements of a mask that a thread looks at

struct alignas(MARKS) Marks {
    bool values[MARKS];
};

// A thread's elements of the mask; false behind its end.
__device__ inline Marks own_marks(const bool *mask, int64 n)
{
    int64 first = ((int64)blockIdx.x * blockDim.x + threadIdx.x) * MARKS;
    if (first + MARKS <= n && (uint64)(mask + first) % MARKS == 0)
        return *(const Marks *)(mask + first);
    Marks marks;
    for (int k = 0; k < MARKS; ++k)
        marks.values[k] = first + k < n && mask[first + k];
    return marks;
}

__device__ inline int number_of(const Marks &marks)
{
    int count = 0;
    for (int k = 0; k < MARKS; ++k)
        count += marks.values[k];
    return count;
}

// Calls `action(i, rank)` for each true element; `ranks` has how many come before each block.
template <class Action> __device__ void for_each_true(const bool *mask, int64 n, const int64 *ranks, Action action)
{
    Marks marks = own_marks(mask, n);
    int64 first = ((int64)blockIdx.x * blockDim.x + threadIdx.x) * MARKS, total;
    int64 rank = ranks[blockIdx.x] + sum_before(number_of(marks), total);
    for (int k = 0; k < MARKS; ++k)
        if (marks.values[k])
            action(first + k, rank++);
}
