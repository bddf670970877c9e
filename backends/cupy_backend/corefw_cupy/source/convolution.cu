// Convolutions as products of matrices that are gathered on the way: (taps of the kernel) x (places of the images).
//
// A block computes a tile of the product of one group. Slabs of both factors go through shared memory, twice: while one
// is multiplied, the next one is on its way from global memory.

#include "convolution.cuh"

typedef Sum<T>::type Number;

#define THREADS 256
#define QUAD 4 // a thread's rows and columns come in fours, read at once

template <int rows_, int columns_, int bytes> struct Tile {
    static const int rows = rows_, columns = columns_;
    static const int depth = bytes / sizeof(Number);
    static const int down = rows / QUAD < 16 ? rows / QUAD : 16, across = THREADS / down; // the threads
    static const int row_quads = rows / (down * QUAD), column_quads = columns / (across * QUAD);
    static const int of_left = rows * depth / THREADS, of_image = columns * depth / THREADS; // that a thread loads
};

struct alignas(16) Quad {
    Number values[QUAD];
};

// Padded by a quad, so that threads that write one column of neighbouring rows meet different banks.
template <int columns, int depth> struct alignas(16) Slab {
    Number values[depth][columns + QUAD];
};

// The product in a tile: forward, rows are channels of the result, columns places, and taps are summed over; in the
// gradient of the kernel (`weigh`), columns are taps, and places are summed over.
template <bool weigh, class Tile>
__device__ void multiply(const T *image, const T *left, const T *bias, T *out, Number *partial, int64 total,
                         const Convolution &c)
{
    __shared__ Slab<Tile::rows, Tile::depth> lefts[2];
    __shared__ Slab<Tile::columns, Tile::depth> images[2];
    __shared__ Part inner[2][Tile::depth], columns[Tile::columns];

    uint32 places = count_places(c), taps = count_taps(c);
    uint32 depth = weigh ? places : taps, width = weigh ? taps : places;
    uint32 tiles_down = (c.rows + Tile::rows - 1) / Tile::rows, tiles_across = (width + Tile::columns - 1) / Tile::columns;
    int64 first_row = blockIdx.x % tiles_down * Tile::rows, group = blockIdx.x / tiles_down / tiles_across;
    uint32 first_column = blockIdx.x / tiles_down % tiles_across * Tile::columns;
    int64 left_row = weigh ? c.place_row : c.tap_row, out_row = weigh ? c.tap_row : c.place_row;
    int64 place_start = c.place_offset + group * c.place_group, tap_start = c.tap_offset + group * c.tap_group;
    image += group * c.image_group;
    left += (weigh ? place_start : tap_start) + first_row * left_row;
    int64 start = (weigh ? tap_start : place_start) + first_row * out_row;

    uint32 first, last;
    own_range(depth, Tile::depth, first, last);
    int thread = threadIdx.x, slabs = (last - first + Tile::depth - 1) / Tile::depth;

    auto describe = [&](int slab) { // where the factors' elements lie
        uint32 index = first + slab * Tile::depth + thread;
        if (thread < Tile::depth)
            inner[slab % 2][thread] = index >= last ? nowhere() : weigh ? place(c, index) : tap(c, index);
    };
    Number from_left[Tile::of_left], from_image[Tile::of_image];
    auto load = [&](int slab) {
        const Part(&parts)[Tile::depth] = inner[slab % 2];
        uint32 begin = first + slab * Tile::depth;
        for (int i = 0; i < Tile::of_left; ++i) {
            int item = thread + i * THREADS, k = item % Tile::depth, row = item / Tile::depth;
            bool inside = begin + k < last && first_row + row < c.rows;
            from_left[i] = inside ? (Number)left[parts[k].other + row * left_row] : Number(0);
        }
        for (int i = 0; i < Tile::of_image; ++i) { // neighbouring threads read neighbouring places
            int item = thread + i * THREADS;
            int k = weigh ? item % Tile::depth : item / Tile::columns;
            int column = weigh ? item / Tile::depth : item % Tile::columns;
            from_image[i] = (Number)seen(image, c, parts[k], columns[column]);
        }
    };
    auto store = [&](int slab) {
        for (int i = 0; i < Tile::of_left; ++i) {
            int item = thread + i * THREADS;
            lefts[slab % 2].values[item % Tile::depth][item / Tile::depth] = from_left[i];
        }
        for (int i = 0; i < Tile::of_image; ++i) {
            int item = thread + i * THREADS;
            int k = weigh ? item % Tile::depth : item / Tile::columns;
            int column = weigh ? item / Tile::depth : item % Tile::columns;
            images[slab % 2].values[k][column] = from_image[i];
        }
    };

    for (int i = thread; i < Tile::columns; i += THREADS) {
        uint32 column = first_column + i;
        columns[i] = column >= width ? nowhere() : weigh ? tap(c, column) : place(c, column);
    }
    describe(0);
    describe(1);
    __syncthreads();
    load(0);
    store(0);
    __syncthreads();

    int across = thread % Tile::across * QUAD, down = thread / Tile::across * QUAD;
    Number sums[Tile::row_quads * QUAD][Tile::column_quads * QUAD];
    for (auto &row : sums)
        for (Number &sum : row)
            sum = Number(0);
    for (int slab = 0; slab < slabs; ++slab) {
        if (slab + 1 < slabs)
            load(slab + 1);
#pragma unroll
        for (int k = 0; k < Tile::depth; ++k) {
            Quad rows[Tile::row_quads], places[Tile::column_quads];
            for (int i = 0; i < Tile::row_quads; ++i)
                rows[i] = *(const Quad *)&lefts[slab % 2].values[k][i * Tile::down * QUAD + down];
            for (int j = 0; j < Tile::column_quads; ++j)
                places[j] = *(const Quad *)&images[slab % 2].values[k][j * Tile::across * QUAD + across];
            for (int i = 0; i < Tile::row_quads * QUAD; ++i)
                for (int j = 0; j < Tile::column_quads * QUAD; ++j)
                    sums[i][j] =
                        sums[i][j] + rows[i / QUAD].values[i % QUAD] * places[j / QUAD].values[j % QUAD];
        }
        if (slab + 1 < slabs)
            store(slab + 1);
        describe(slab + 2);
        __syncthreads();
    }

#pragma unroll
    for (int j = 0; j < Tile::column_quads * QUAD; ++j) {
        int column = j / QUAD * Tile::across * QUAD + across + j % QUAD;
        if (first_column + column >= width)
            continue;
        int64 at = start + columns[column].other;
#pragma unroll
        for (int i = 0; i < Tile::row_quads * QUAD; ++i) {
            int row = i / QUAD * Tile::down * QUAD + down + i % QUAD;
            if (first_row + row >= c.rows)
                continue;
            if (partial)
                partial[blockIdx.y * total + at + row * out_row] = sums[i][j];
            else
                out[at + row * out_row] =
                    (T)(bias ? sums[i][j] + (Number)bias[group * c.rows + first_row + row] : sums[i][j]);
        }
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
