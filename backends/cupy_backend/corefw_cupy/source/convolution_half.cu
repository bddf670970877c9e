// Convolutions of half types as products of matrices by tensor cores.

#include "convolution_product.cuh"
#include "mma.cuh"

#define DEPTH 16      // what a fragment has
#define FRAGMENT_ROWS 16
#define FRAGMENT_COLUMNS 8
#define PAD 8 // elements, so that the rows of an 8 x 8 matrix lie in different banks

template <int rows_, int columns_, int warps_down> struct Tile {
    static const int rows = rows_, columns = columns_;
    static const int down = warps_down, across = THREADS / 32 / down; // the warps
    static const int own_rows = rows / down, own_columns = columns / across;
    static const int row_fragments = own_rows / FRAGMENT_ROWS, column_fragments = own_columns / FRAGMENT_COLUMNS;
};

template <int lines, int length> struct alignas(16) Slab {
    T values[lines][length + PAD];
};

// While one slab is multiplied, the next one is on its way from global memory.
template <bool weigh, class Tile>
__device__ void multiply(const T *image, const T *left, const T *bias, T *out, Number *partial, int64 total,
                         const Convolution &c)
{
    typedef Product<weigh, Tile::rows, Tile::columns, DEPTH> Own;
    __shared__ typename Own::Parts parts;
    __shared__ Slab<Tile::rows, DEPTH> lefts[2];
    __shared__ Slab<DEPTH, Tile::columns> images[2];

    Own product(image, left, c, parts);
    auto store = [&](int slab) {
        for (int i = 0; i < Own::of_left; ++i)
            lefts[slab % 2].values[product.left_line(i)][product.left_depth(i)] = product.from_left[i];
        for (int i = 0; i < Own::of_image; ++i)
            images[slab % 2].values[product.image_depth(i)][product.image_line(i)] = product.from_image[i];
    };
    product.describe_columns();
    product.describe(0);
    product.describe(1);
    __syncthreads();
    product.load(0);
    store(0);
    __syncthreads();

    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int first_row = warp / Tile::across * Tile::own_rows, first_column = warp % Tile::across * Tile::own_columns;
    float sums[Tile::row_fragments][Tile::column_fragments][4] = {};
    int slabs = product.slabs();
    for (int slab = 0; slab < slabs; ++slab) {
        if (slab + 1 < slabs)
            product.load(slab + 1);
        const auto &left_slab = lefts[slab % 2];
        const auto &image_slab = images[slab % 2];
        uint32 rows[Tile::row_fragments][4], columns[Tile::column_fragments / 2][4]; // columns two fragments at once
#pragma unroll
        for (int i = 0; i < Tile::row_fragments; ++i)
            load_fragments<false>(rows[i],
                                  &left_slab.values[first_row + i * FRAGMENT_ROWS + lane % 16][lane / 16 * 8]);
#pragma unroll
        for (int j = 0; j < Tile::column_fragments / 2; ++j)
            load_fragments<true>(columns[j], &image_slab.values[lane % 16][first_column + j * 16 + lane / 16 * 8]);
#pragma unroll
        for (int i = 0; i < Tile::row_fragments; ++i)
#pragma unroll
            for (int j = 0; j < Tile::column_fragments; ++j) {
                uint32 column[2] = {columns[j / 2][j % 2 * 2], columns[j / 2][j % 2 * 2 + 1]};
                multiply_fragments<T>(sums[i][j], rows[i], column);
            }
        if (slab + 1 < slabs)
            store(slab + 1);
        product.describe(slab + 2);
        __syncthreads();
    }

#pragma unroll
    for (int i = 0; i < Tile::row_fragments; ++i)
#pragma unroll
        for (int j = 0; j < Tile::column_fragments; ++j)
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                int row = first_row + i * FRAGMENT_ROWS + k / 2 * 8 + lane / 4;
                int column = first_column + j * FRAGMENT_COLUMNS + lane % 4 * 2 + k % 2;
                product.put(row, column, sums[i][j][k], bias, out, partial, total);
            }
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
    convolve(const T *image, const T *kernel, const T *bias, T *out, Number *partial, int64 total, Convolution c)
{
    multiply<false, TILE>(image, kernel, bias, out, partial, total, c);
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
    weigh(const T *image, const T *gradient, T *out, Number *partial, int64 total, Convolution c)
{
    multiply<true, TILE>(image, gradient, nullptr, out, partial, total, c);
}
