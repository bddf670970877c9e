// Arrays seen as groups of elements: rows, or channels of samples. Statistics are taken of the elements of a group.

#include "core/rows.cuh"

#ifndef WEIGHT // the type of weights and biases
#define WEIGHT T
#endif

// An array of `outer` x `groups` x `inner` elements; what is outer and inner belongs to a group.
struct View {
    int64 outer, groups, inner;
    int64 period, channels, run; // of weights: see weight_at

    __device__ int64 size() const { return outer * inner; }

    // Where element `at` of a group lies.
    __device__ int64 place(int64 group, int64 at) const
    {
        if (outer == 1)
            return group * inner + at;
        int64 sample = at / inner;
        return (sample * groups + group) * inner + at - sample * inner;
    }

    // Which number of a weight or bias belongs to element `at` of a group.
    __device__ int64 weight_at(int64 group, int64 at) const
    {
        return (period == 1 ? 0 : group % period * channels) + (run == 1 ? at : at < run ? 0 : at / run);
    }
};

// The numbers of a weight or bias for `count` elements of a group that lie together.
template <int count, class Weight>
__device__ void read_weights(
    const Weight *weights, const View &view, int64 group, int64 at, A missing, A (&values)[count])
{
    if (weights && view.run == 1) {
        read<count>(weights + view.weight_at(group, at), values);
        return;
    }
    A value = weights ? A(weights[view.weight_at(group, at)]) : missing;
    bool one = !weights || view.run % count == 0 || view.run >= view.size();
    for (int k = 0; k < count; ++k)
        values[k] = one || k == 0 ? value : A(weights[view.weight_at(group, at + k)]);
}

// The part of its group that a block works on.
struct Part {
    int64 group, begin, end;
};

__device__ inline Part part_of(const View &view, int64 parts, int64 length)
{
    int64 begin = blockIdx.x % parts * length;
    return {blockIdx.x / parts, begin, min(view.size(), begin + length)};
}

// The elements of a group that a thread holds.
__device__ inline void load_group(const T *from, const View &view, int64 group, int64 n, Lane lane, bool packed,
                                  A (&values)[ITEMS])
{
    for_items(lane, packed, [&](auto several, int item, int64 at) {
        const int count = decltype(several)::count;
        if (at < n)
            read<count>(from + view.place(group, at), values + item);
        else
            for (int k = 0; k < count; ++k)
                values[item + k] = 0;
    });
}
