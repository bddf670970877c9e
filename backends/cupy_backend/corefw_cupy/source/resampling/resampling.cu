// Resampling: every place of the result reads a few elements along each dimension, and weighs them by a FILTER. The
// gradient of an element is gathered from the places that read it.

#include "core/types.cuh"
#include "core/division.cuh"

#ifndef FILTER
#define FILTER Nearest
#endif

#define SPATIAL 3

// What positions and weights are computed in.
template <class Stored> struct Weighing {
    typedef float32 type;
};
template <> struct Weighing<float64> {
    typedef float64 type;
};
typedef Weighing<T>::type Weight;

// Place i of `count` reads `size` elements around (i + before) * step - after. A dimension that the array lacks has one
// place that reads one element.
struct Axis {
    Divisor<SIZE> result; // places or, for the gradient, elements
    SIZE size, count, missing;
    float64 step, before, after;
    float64 places_of_element; // 1 / step
};

struct Resampling {
    int64 n; // results
    Axis axes[SPATIAL];
};

__device__ inline Weight center(const Axis &axis, SIZE place)
{
    return (place + Weight(axis.before)) * Weight(axis.step) - Weight(axis.after);
}

// Keys' kernel, "Cubic convolution interpolation for digital image processing", 1981, equation 4.
__device__ inline Weight cubic(Weight distance, Weight a)
{
    Weight d = fabs(distance);
    if (d <= 1)
        return ((a + 2) * d - (a + 3)) * d * d + 1;
    return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

// -- filters: how a place reads `count()` elements, the k-th at `position(k)`; those beyond the border stand for it ----
template <int taps> struct Interpolation {
    SIZE first, size;
    Weight weights[taps];

    __device__ static int count() { return taps; }
    __device__ SIZE position(int k) const { return min(max(first + k, SIZE(0)), size - 1); }
    __device__ Weight weight(int k) const { return weights[k]; }

    // With which weight an element is read.
    __device__ Weight share(SIZE element) const
    {
        Weight sum = 0;
        for (int k = 0; k < taps; ++k)
            if (position(k) == element)
                sum += weights[k];
        return sum;
    }

    __device__ static float64 reach(const Axis &) { return taps; }
};

struct Nearest : Interpolation<1> {
    __device__ Nearest(const Axis &axis, SIZE place)
    {
        first = floor(center(axis, place));
        size = axis.size;
        weights[0] = 1;
    }
};

struct Linear : Interpolation<2> {
    __device__ Linear(const Axis &axis, SIZE place)
    {
        Weight at = max(center(axis, place), Weight(0));
        size = axis.size;
        first = min((SIZE)floor(at), size - 1);
        weights[1] = min(at - first, Weight(1));
        weights[0] = 1 - weights[1];
    }
};

struct Cubic : Interpolation<4> {
    __device__ Cubic(const Axis &axis, SIZE place)
    {
        Weight at = center(axis, place);
        size = axis.size;
        first = (SIZE)floor(at) - 1;
        for (int k = 0; k < 4; ++k)
            weights[k] = cubic(at - (first + k), Weight(-0.75));
    }
};

// A filter that is as wide as the step, so that all elements between two places count.
template <int support> struct Average {
    SIZE first, last;
    Weight at, width, total;

    __device__ Average(const Axis &axis, SIZE place)
    {
        at = center(axis, place);
        width = max(Weight(axis.step), Weight(1));
        first = max((SIZE)(at - support * width + Weight(0.5)), SIZE(0));
        last = min((SIZE)(at + support * width + Weight(0.5)), axis.size);
        total = 0;
        for (SIZE element = first; element < last; ++element)
            total += height(element);
    }

    __device__ Weight height(SIZE element) const
    {
        Weight distance = (element - at + Weight(0.5)) / width;
        return support == 2 ? cubic(distance, Weight(-0.5)) : max(1 - fabs(distance), Weight(0));
    }

    __device__ int count() const { return last - first; }
    __device__ SIZE position(int k) const { return first + k; }
    __device__ Weight weight(int k) const { return height(first + k) / total; }
    __device__ Weight share(SIZE element) const
    {
        return element >= first && element < last ? height(element) / total : Weight(0);
    }

    __device__ static float64 reach(const Axis &axis) { return support * max(axis.step, 1.0) + 1; }
};

typedef Average<1> LinearAverage;
typedef Average<2> CubicAverage;

// -- the sums ----------------------------------------------------------------------------------------------------------
// The weighed sum of what the places along an axis and the axes inside of it read.
template <int axis> struct Read {
    __device__ static Weight sum(const T *from, SIZE offset, const FILTER *filters, const Resampling &resampling)
    {
        const Axis &along = resampling.axes[axis];
        offset *= along.size;
        if (along.missing)
            return Read<axis + 1>::sum(from, offset, filters, resampling);
        const FILTER &filter = filters[axis];
        Weight sum = 0;
        for (int k = 0; k < filter.count(); ++k)
            sum += filter.weight(k) * Read<axis + 1>::sum(from, offset + filter.position(k), filters, resampling);
        return sum;
    }
};
template <> struct Read<SPATIAL> {
    __device__ static Weight sum(const T *from, SIZE offset, const FILTER *, const Resampling &)
    {
        return Weight(from[offset]);
    }
};

// One element of the input for each of the result: no arithmetic, so any type.
__device__ inline T read(const T *from, const Interpolation<1> *filters, const Resampling &resampling)
{
    SIZE offset = 0;
    for (int axis = 0; axis < SPATIAL; ++axis)
        offset = offset * resampling.axes[axis].size + filters[axis].position(0);
    return from[offset];
}

template <class Filter> __device__ T read(const T *from, const Filter *filters, const Resampling &resampling)
{
    return T(Read<0>::sum(from, 0, filters, resampling));
}

// This thread's element of the result, unless there is none: in which plane it lies, and where there.
struct Element {
    int64 index = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    bool exists;
    SIZE plane, z, y, x;

    __device__ Element(const Resampling &resampling) : exists(index < resampling.n), plane(index)
    {
        const Axis *axes = resampling.axes;
        x = take_innermost(plane, axes[2].result);
        y = take_innermost(plane, axes[1].result);
        z = take_innermost(plane, axes[0].result);
    }
};

extern "C" __global__ void resample(const T *input, T *out, Resampling resampling)
{
    const Element at(resampling);
    if (!at.exists)
        return;
    const Axis *axes = resampling.axes;
    const FILTER filters[SPATIAL] = {FILTER(axes[0], at.z), FILTER(axes[1], at.y), FILTER(axes[2], at.x)};
    out[at.index] = read(input + (int64)at.plane * axes[0].size * axes[1].size * axes[2].size, filters, resampling);
}

// The places that may read an element: from the first to the one behind the last that does.
struct Places {
    SIZE begin, end;

    __device__ Places(const Axis &axis, SIZE element)
    {
        begin = 0;
        end = axis.count;
        if (axis.missing || axis.step == 0)
            return;
        float64 reach = FILTER::reach(axis) + 1, at = element + axis.after;
        float64 first = (at - reach) * axis.places_of_element - axis.before;
        float64 last = (at + reach) * axis.places_of_element - axis.before;
        if (element > 0)
            begin = min(max(first, 0.0), (float64)end);
        if (element < axis.size - 1)
            end = min(max(last + 1, (float64)begin), (float64)end);
        while (begin < end && FILTER(axis, begin).share(element) == 0)
            ++begin;
        while (begin < end && FILTER(axis, end - 1).share(element) == 0)
            --end;
    }
};

__device__ inline Weight share(const Axis &axis, SIZE place, SIZE element)
{
    return axis.missing ? Weight(1) : FILTER(axis, place).share(element);
}

extern "C" __global__ void resample_backward(const T *grad, T *out, Resampling resampling)
{
    const Element at(resampling);
    if (!at.exists)
        return;
    const Axis *axes = resampling.axes;
    const T *from = grad + (int64)at.plane * axes[0].count * axes[1].count * axes[2].count;
    const Places layers(axes[0], at.z), rows(axes[1], at.y), columns(axes[2], at.x);
    Weight sum = 0;
    for (SIZE layer = layers.begin; layer < layers.end; ++layer) {
        Weight of_layer = share(axes[0], layer, at.z);
        for (SIZE row = rows.begin; row < rows.end; ++row) {
            Weight of_row = of_layer * share(axes[1], row, at.y);
            for (SIZE column = columns.begin; column < columns.end; ++column)
                if (Weight weight = of_row * share(axes[2], column, at.x)) // infinities that are not read do not count
                    sum += weight * Weight(from[(layer * axes[1].count + row) * axes[2].count + column]);
        }
    }
    out[at.index] = T(sum);
}
