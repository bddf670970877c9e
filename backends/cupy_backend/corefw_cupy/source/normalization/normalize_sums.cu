// The two sums that gradients of normalisations are made of: of x̂ gradient, with x̂ = (input - mean) * scale, and of the
// gradient, over groups or columns. Each block leaves those of its part: of_parts[part][0 or 1][group].

#include "normalization/groups.cuh"

struct Standard {
    const A *means, *scales; // or 0

    __device__ A value(A x, int64 index) const
    {
        A mean = means ? means[index] : A(0);
        return scales ? (x - mean) * scales[index] : x;
    }
};

// The statistics of group g of a sample are those numbered g / channels, and there are `of_sample` of each sample (0 if
// samples share them).
extern "C" __global__ void __launch_bounds__(MOST_THREADS) group_sums(
    const T *__restrict__ gradient, const T *__restrict__ input, const WEIGHT *__restrict__ weight,
    const A *__restrict__ means, const A *__restrict__ scales, A *of_parts, View view, int64 parts, int64 length,
    int64 of_sample, int64 channels)
{
    Part part = part_of(view, parts, length);
    Standard standard = {means, scales};
    bool packed = packed_rows(view.inner, gradient, input, weight);
    A product = 0, sum = 0;
    walk(part.begin, part.end, threadIdx.x, blockDim.x, packed, [&](auto several, int64 at) {
        const int count = decltype(several)::count;
        int64 place = view.place(part.group, at), index = part.group / channels;
        if (of_sample)
            index += at / view.inner * of_sample;
        A gradients[count], values[count], factors[count];
        read<count>(gradient + place, gradients);
        read<count>(input + place, values);
        read_weights(weight, view, part.group, at, A(1), factors);
        for (int k = 0; k < count; ++k) {
            A weighted = gradients[k] * factors[k];
            product += weighted * standard.value(values[k], index);
            sum += weighted;
        }
    });
    product = combine_block<Add>(product, A(0));
    sum = combine_block<Add>(sum, A(0));
    if (threadIdx.x == 0) {
        of_parts += (blockIdx.x % parts * 2) * view.groups + part.group;
        of_parts[0] = product;
        of_parts[view.groups] = sum;
    }
}

// Neighbouring threads work on neighbouring columns, and several on each; statistics are of columns or of rows.
extern "C" __global__ void __launch_bounds__(MOST_THREADS) column_sums(
    const T *__restrict__ gradient, const T *__restrict__ input, const A *__restrict__ means,
    const A *__restrict__ scales, A *of_parts, int64 rows, int64 columns, int64 width, int64 parts, int64 length,
    bool of_rows)
{
    int64 column = blockIdx.x / parts * width + threadIdx.x % (int)width, begin = blockIdx.x % parts * length;
    int64 end = min(rows, begin + length), lane = threadIdx.x / (int)width, lanes = blockDim.x / (int)width;
    Standard standard = {means, scales};
    A product = 0, sum = 0;
    for (int64 row = begin + lane; column < columns && row < end; row += lanes) {
        A slope = gradient[row * columns + column], value = input[row * columns + column];
        product += slope * standard.value(value, of_rows ? row : column);
        sum += slope;
    }
    product = combine_column<Add>(product, width);
    sum = combine_column<Add>(sum, width);
    if (lane == 0 && column < columns) {
        of_parts += (blockIdx.x % parts * 2) * columns + column;
        of_parts[0] = product;
        of_parts[columns] = sum;
    }
}

// The sums of all parts: as gradients of weight and bias if these are wanted, and as averages[0 or 1][group], the means
// over n elements, of the gradient times a group's weight.
extern "C" __global__ void __launch_bounds__(MOST_THREADS) join_sums(
    const A *__restrict__ of_parts, const WEIGHT *__restrict__ weight, A *of_weight, A *of_bias, A *averages,
    int64 groups, int64 parts, int64 n, int64 width)
{
    int64 group = (int64)blockIdx.x * width + threadIdx.x % (int)width;
    A product = 0, sum = 0;
    for (int64 part = threadIdx.x / (int)width; group < groups && part < parts; part += blockDim.x / (int)width) {
        product += of_parts[part * 2 * groups + group];
        sum += of_parts[(part * 2 + 1) * groups + group];
    }
    product = combine_column<Add>(product, width);
    sum = combine_column<Add>(sum, width);
    if (threadIdx.x >= width || group >= groups)
        return;
    if (of_weight) {
        of_weight[group] = product;
        of_bias[group] = sum;
    }
    if (averages) {
        A factor = weight ? A(weight[group]) : A(1);
        averages[group] = product * factor / A(n);
        averages[groups + group] = sum * factor / A(n);
    }
}
