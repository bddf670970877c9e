// Gradients of normalisations from averages that were found before: those of x̂ g, and then those of g = gradient *
// weight, where x̂ = (input - mean) * scale. Without means the averages of g are left out.

#include "normalization/for_each.cuh"

extern "C" __global__ void normalize_apply(
    const T *__restrict__ gradient, const T *__restrict__ input, const WEIGHT *__restrict__ weight,
    const A *__restrict__ means, const A *__restrict__ scales, const A *__restrict__ averages, T *result, View view)
{
    bool packed = packed_rows(view.inner, gradient, input, weight, result);
    for_each(view, packed, [&](auto several, int64 place, int64 group, int64 at) {
        const int count = decltype(several)::count;
        A mean = means ? means[group] : A(0), scale = scales[group];
        A along = averages[group], level = means ? averages[view.groups + group] : A(0);
        A gradients[count], values[count], factors[count];
        read<count>(gradient + place, gradients);
        read<count>(input + place, values);
        read_weights(weight, view, group, at, A(1), factors);
        for (int k = 0; k < count; ++k)
            values[k] = (gradients[k] * factors[k] - level - (values[k] - mean) * scale * along) * scale;
        write<count>(result + place, values);
    });
}

// The groups are the columns of a matrix.
extern "C" __global__ void normalize_apply_columns(
    const T *__restrict__ gradient, const T *__restrict__ input, const WEIGHT *__restrict__ weight,
    const A *__restrict__ means, const A *__restrict__ scales, const A *__restrict__ averages, T *result, View view)
{
    bool packed = packed_rows(view.groups, gradient, input, weight, result);
    spread_columns(view, packed, [&](auto several, int64 place, int64 column) {
        const int count = decltype(several)::count;
        A gradients[count], values[count];
        read<count>(gradient + place, gradients);
        read<count>(input + place, values);
        for (int k = 0; k < count; ++k) {
            int64 group = column + k;
            A mean = means ? means[group] : A(0), scale = scales[group], factor = weight ? A(weight[group]) : A(1);
            A level = means ? averages[view.groups + group] : A(0);
            values[k] = (gradients[k] * factor - level - (values[k] - mean) * scale * averages[group]) * scale;
        }
        write<count>(result + place, values);
    });
}
