// Products of batches of integer matrices: blocks of 64 x 64 results, 4 x 4 of them in each thread.

#include "core/types.cuh"

#define TILE 64
#define DEPTH 16
#define SIDE 16 // of the square of threads
#define OWN (TILE / SIDE)

// Sums wrap around as those of T do, so unsigned ones of at least its size serve.
template <bool wide> struct Wrapping {
    typedef uint32 type;
};
template <> struct Wrapping<true> {
    typedef uint64 type;
};
typedef Wrapping<sizeof(T) == 8>::type Wrapped;


// Read `TILE` vectors of `DEPTH` elements, zero where there are none.
__device__ inline void load(const T *from, int64 vector, int64 vectors, int64 step, int64 element, int64 elements,
                            int64 stride, Wrapped (&to)[DEPTH][TILE])
{
    bool along = stride == 1; // neighbouring threads read neighbouring elements
    for (int i = threadIdx.x; i < TILE * DEPTH; i += SIDE * SIDE) {
        int v = along ? i / DEPTH : i % TILE, e = along ? i % DEPTH : i / TILE;
        bool inside = vector + v < vectors && element + e < elements;
        to[e][v] = inside ? (Wrapped)from[(vector + v) * step + (element + e) * stride] : 0;
    }
}

// out = alpha * left @ right + beta * out, each block one tile of one of the matrices.
extern "C" __global__ void __launch_bounds__(SIDE *SIDE)
    integer_matmul(const T *left, const T *right, T *out, int64 rows, int64 columns, int64 inner, int64 left_row,
                   int64 left_column, int64 left_jump, int64 right_row, int64 right_column, int64 right_jump,
                   int64 alpha, int64 beta)
{
    __shared__ Wrapped of_left[DEPTH][TILE], of_right[DEPTH][TILE];
    int64 across = (columns + TILE - 1) / TILE, down = (rows + TILE - 1) / TILE, tile = blockIdx.x;
    int64 column = tile % across * TILE, row = tile / across % down * TILE, matrix = tile / across / down;
    int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
    Wrapped sums[OWN][OWN] = {};
    left += matrix * left_jump;
    right += matrix * right_jump;
    for (int64 first = 0; first < inner; first += DEPTH) {
        load(left, row, rows, left_row, first, inner, left_column, of_left);
        load(right, column, columns, right_column, first, inner, right_row, of_right);
        __syncthreads();
        for (int k = 0; k < DEPTH; ++k)
            for (int i = 0; i < OWN; ++i)
                for (int j = 0; j < OWN; ++j)
                    sums[i][j] += of_left[k][y + i * SIDE] * of_right[k][x + j * SIDE];
        __syncthreads();
    }
    out += matrix * rows * columns;
    for (int i = 0; i < OWN; ++i)
        for (int j = 0; j < OWN; ++j) {
            int64 to_row = row + y + i * SIDE, to_column = column + x + j * SIDE;
            if (to_row >= rows || to_column >= columns)
                continue;
            T &result = out[to_row * columns + to_column];
            Wrapped before = beta ? (Wrapped)beta * (Wrapped)result : 0;
            result = (T)(before + (Wrapped)alpha * sums[i][j]);
        }
}
