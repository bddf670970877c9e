// Convolutions as products of matrices by tensor cores: of half types, and of float32 rounded to TensorFloat-32.

#include "convolution/convolution_product.cuh"
#include "core/mma.cuh"

#define DEPTH 16
#define FRAGMENT_ROWS 16
#define FRAGMENT_COLUMNS 8

template <int rows_, int columns_, int warps_down> struct Tile {
    static const int rows = rows_, columns = columns_;
    static const int down = warps_down, across = THREADS / 32 / down; // the warps
    static const int own_rows = rows / down, own_columns = columns / across;
    static const int row_fragments = own_rows / FRAGMENT_ROWS, column_fragments = own_columns / FRAGMENT_COLUMNS;
};

// How factors lie in shared memory: slabs of DEPTH columns of the left one, or rows of the right one, padded so that
// what lanes read at once lies in different banks. A fragment has `depth` of them.
template <class Stored> struct Factors {
    typedef Stored Number;
    static const int depth = 16, row_pad = 8, column_pad = 8;

    // 16 rows from `first` on.
    __device__ static void load_rows(uint32 (&found)[4], const Number (*slab)[DEPTH + row_pad], int first, int)
    {
        int lane = threadIdx.x % 32;
        load_fragments<false>(found, &slab[first + lane % 16][lane / 16 * 8]);
    }

    // Two fragments of 8 columns from `first` on.
    template <int pitch>
    __device__ static void load_columns(uint32 (&found)[4], const Number (*slab)[pitch], int first, int)
    {
        int lane = threadIdx.x % 32;
        load_fragments<true>(found, &slab[lane % 16][first + lane / 16 * 8]);
    }
};

template <> struct Factors<float32> {
    typedef tf32 Number;
    static const int depth = 8, row_pad = 4, column_pad = 8;

    __device__ static void load_rows(uint32 (&found)[4], const Number (*slab)[DEPTH + row_pad], int first, int k)
    {
        int group = threadIdx.x % 32 / 4, pair = threadIdx.x % 4;
        for (int i = 0; i < 4; ++i)
            found[i] = slab[first + group + i % 2 * 8][k + pair + i / 2 * 4].bits;
    }

    template <int pitch>
    __device__ static void load_columns(uint32 (&found)[4], const Number (*slab)[pitch], int first, int k)
    {
        int group = threadIdx.x % 32 / 4, pair = threadIdx.x % 4;
        for (int i = 0; i < 4; ++i)
            found[i] = slab[k + pair + i % 2 * 4][first + group + i / 2 * 8].bits;
    }
};

// While one slab is multiplied, the next one is on its way from global memory.
template <bool weight_gradient, class Tile>
__device__ void multiply(const T *image, const T *left, const T *bias, T *out, Number *partial, int64 total,
                         const Convolution &c)
{
    typedef Product<weight_gradient, Tile::rows, Tile::columns, DEPTH> Own;
    __shared__ typename Own::Parts parts;
    typedef Factors<T> Factors;
    typedef typename Factors::Number Stored;
    alignas(16) __shared__ Stored lefts[2][Tile::rows][DEPTH + Factors::row_pad];
    alignas(16) __shared__ Stored images[2][DEPTH][Tile::columns + Factors::column_pad];

    Own product(image, left, c, parts);
    auto store = [&](int slab) {
        for (int i = 0; i < Own::of_left; ++i)
            lefts[slab % 2][product.left_line(i)][product.left_depth(i)] = product.from_left[i];
        for (int i = 0; i < Own::of_image; ++i)
            images[slab % 2][product.image_depth(i)][product.image_line(i)] = product.from_image[i];
    };
    product.begin(store);

    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int first_row = warp / Tile::across * Tile::own_rows, first_column = warp % Tile::across * Tile::own_columns;
    float sums[Tile::row_fragments][Tile::column_fragments][4] = {};
    int slabs = product.slabs();
    for (int slab = 0; slab < slabs; ++slab) {
        if (slab + 1 < slabs)
            product.load(slab + 1);
#pragma unroll
        for (int k = 0; k < DEPTH; k += Factors::depth) {
            uint32 row[4], columns[Tile::column_fragments / 2][4]; // the fewer fragments are held, two in one
#pragma unroll
            for (int j = 0; j < Tile::column_fragments; j += 2)
                Factors::load_columns(columns[j / 2], images[slab % 2], first_column + j * FRAGMENT_COLUMNS, k);
#pragma unroll
            for (int i = 0; i < Tile::row_fragments; ++i) {
                Factors::load_rows(row, lefts[slab % 2], first_row + i * FRAGMENT_ROWS, k);
#pragma unroll
                for (int j = 0; j < Tile::column_fragments; j += 2) {
                    const uint32(&pair)[4] = columns[j / 2];
                    multiply_fragments<Stored>(sums[i][j], row, {pair[0], pair[1]});
                    multiply_fragments<Stored>(sums[i][j + 1], row, {pair[2], pair[3]});
                }
            }
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

#include "convolution/convolution_kernels.cuh"
