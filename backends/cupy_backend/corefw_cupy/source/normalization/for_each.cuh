// Elementwise functions of arrays seen as groups: each thread visits elements that lie together.

#include "normalization/groups.cuh"

// Calls visit(how many as Several, place in memory, group, the first one's position in the group).
template <class Visit> __device__ void for_each(const View &view, bool packed, Visit visit)
{
    int64 first = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    walk(0, view.outer * view.groups * view.inner, first, (int64)gridDim.x * blockDim.x, packed,
         [&](auto several, int64 place) {
             int64 segment = place / view.inner, sample = view.outer == 1 ? 0 : segment / view.groups;
             visit(several, place, segment - sample * view.groups, place + (sample - segment) * view.inner);
         });
}

// The groups are the columns of a matrix: calls visit(how many as Several, place in memory, column).
template <class Visit> __device__ void spread_columns(const View &view, bool packed, Visit visit)
{
    int64 first = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    walk(0, view.outer * view.groups, first, (int64)gridDim.x * blockDim.x, packed,
         [&](auto several, int64 place) { visit(several, place, place % view.groups); });
}
