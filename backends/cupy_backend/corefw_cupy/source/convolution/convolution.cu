// Convolutions as products of matrices by ordinary arithmetic, for all types of numbers.

#include "convolution/convolution_product.cuh"

#define QUAD 4 // a thread's rows and columns come in fours, read at once

template <int rows_, int columns_, int bytes> struct Tile {
    static const int rows = rows_, columns = columns_, depth = bytes / sizeof(Number);
    static const int down = rows / QUAD < 16 ? rows / QUAD : 16, across = THREADS / down; // the threads
    static const int row_quads = rows / (down * QUAD), column_quads = columns / (across * QUAD);
};

struct alignas(16) Quad {
    Number values[QUAD];
};

// Padded by a quad, so that threads that write one column of neighbouring rows meet different banks.
template <int columns, int depth> struct alignas(16) Slab {
    Number values[depth][columns + QUAD];
};

// While one slab is multiplied, the next one is on its way from global memory.
template <bool weight_gradient, class Tile>
__device__ void multiply(const T *image, const T *left, const T *bias, T *out, Number *partial, int64 total,
                         const Convolution &c)
{
    typedef Product<weight_gradient, Tile::rows, Tile::columns, Tile::depth> Own;
    __shared__ typename Own::Parts parts;
    __shared__ Slab<Tile::rows, Tile::depth> lefts[2];
    __shared__ Slab<Tile::columns, Tile::depth> images[2];

    Own product(image, left, c, parts);
    auto store = [&](int slab) {
        for (int i = 0; i < Own::of_left; ++i)
            lefts[slab % 2].values[product.left_depth(i)][product.left_line(i)] = (Number)product.from_left[i];
        for (int i = 0; i < Own::of_image; ++i)
            images[slab % 2].values[product.image_depth(i)][product.image_line(i)] = (Number)product.from_image[i];
    };
    product.begin(store);

    int across = threadIdx.x % Tile::across * QUAD, down = threadIdx.x / Tile::across * QUAD;
    Number sums[Tile::row_quads * QUAD][Tile::column_quads * QUAD];
    for (auto &row : sums)
        for (Number &sum : row)
            sum = Number(0);
    int slabs = product.slabs();
    for (int slab = 0; slab < slabs; ++slab) {
        if (slab + 1 < slabs)
            product.load(slab + 1);
#pragma unroll
        for (int k = 0; k < Tile::depth; ++k) {
            Quad rows[Tile::row_quads], columns[Tile::column_quads];
            for (int i = 0; i < Tile::row_quads; ++i)
                rows[i] = *(const Quad *)&lefts[slab % 2].values[k][i * Tile::down * QUAD + down];
            for (int j = 0; j < Tile::column_quads; ++j)
                columns[j] = *(const Quad *)&images[slab % 2].values[k][j * Tile::across * QUAD + across];
            for (int i = 0; i < Tile::row_quads * QUAD; ++i)
                for (int j = 0; j < Tile::column_quads * QUAD; ++j)
                    sums[i][j] = sums[i][j] + rows[i / QUAD].values[i % QUAD] * columns[j / QUAD].values[j % QUAD];
        }
        if (slab + 1 < slabs)
            store(slab + 1);
        product.describe(slab + 2);
        __syncthreads();
    }

#pragma unroll
    for (int j = 0; j < Tile::column_quads * QUAD; ++j) {
        int column = j / QUAD * Tile::across * QUAD + across + j % QUAD;
#pragma unroll
        for (int i = 0; i < Tile::row_quads * QUAD; ++i) {
            int row = i / QUAD * Tile::down * QUAD + down + i % QUAD;
            product.put(row, column, sums[i][j], bias, out, partial, total);
        }
    }
}

#include "convolution/convolution_kernels.cuh"
