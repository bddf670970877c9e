// (input - mean) * scale * weight + bias, with a mean and a scale of each group: what is 0 is left out.

#include "normalization/for_each.cuh"

extern "C" __global__ void affine(
    const T *__restrict__ input, const A *__restrict__ means, const A *__restrict__ scales,
    const WEIGHT *__restrict__ weight, const WEIGHT *__restrict__ bias, T *output, View view)
{
    bool packed = packed_rows(view.inner, input, weight, bias, output);
    for_each(view, packed, [&](auto several, int64 place, int64 group, int64 at) {
        const int count = decltype(several)::count;
        A mean = means ? means[group] : A(0), scale = scales ? scales[group] : A(1);
        A values[count], factors[count], shifts[count];
        read<count>(input + place, values);
        read_weights(weight, view, group, at, A(1), factors);
        read_weights(bias, view, group, at, A(0), shifts);
        for (int k = 0; k < count; ++k)
            values[k] = (values[k] - mean) * scale * factors[k] + shifts[k];
        write<count>(output + place, values);
    });
}

// The groups are the columns of a matrix.
extern "C" __global__ void affine_columns(
    const T *__restrict__ input, const A *__restrict__ means, const A *__restrict__ scales,
    const WEIGHT *__restrict__ weight, const WEIGHT *__restrict__ bias, T *output, View view)
{
    bool packed = packed_rows(view.groups, input, weight, bias, output);
    spread_columns(view, packed, [&](auto several, int64 place, int64 column) {
        const int count = decltype(several)::count;
        A values[count];
        read<count>(input + place, values);
        for (int k = 0; k < count; ++k) {
            A mean = means ? means[column + k] : A(0), scale = scales ? scales[column + k] : A(1);
            A factor = weight ? A(weight[column + k]) : A(1), shift = bias ? A(bias[column + k]) : A(0);
            values[k] = (values[k] - mean) * scale * factor + shift;
        }
        write<count>(output + place, values);
    });
}
