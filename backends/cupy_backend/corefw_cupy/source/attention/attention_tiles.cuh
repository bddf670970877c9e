// Products of tiles by fused multiply-adds. A block of 16 x 16 threads owns a tile of 64 rows; thread (x, y) holds rows
// 4 y to 4 y + 3 of it.

#include "attention/attention.cuh"

const int SIDE = 16, EACH = 4, TILE = SIDE * EACH, TILE_THREADS = SIDE * SIDE;
const int PITCH = TILE + EACH;                   // of rows in shared memory, so that they start in different banks
const int DEPTH = sizeof(A) == 4 ? 32 : 8;       // how far two tiles are multiplied at once
const int STAGE = 2 * DEPTH * PITCH;             // elements that wait to be multiplied
const int STEP = D % 64 == 0 ? 4 : D % 32 == 0 ? 2 : 1; // neighbouring columns of a thread, of D
const int STEPS = D / (SIDE * STEP);
const int STAGED = STAGE / D < TILE ? STAGE / D / EACH * EACH : TILE; // rows of D columns that fit into a stage

template <class Number, int width> struct alignas(sizeof(Number) * width) Group {
    Number values[width];
};

// Four elements of a row from `column` on, zeros beyond its end.
__device__ inline Group<A, 4> read_four(const Rows &rows, int64 row, int64 column)
{
    Group<A, 4> found = {};
    if (row >= rows.count)
        return found;
    const T *from = rows.data + row * rows.stride + column;
    if (column + 4 <= rows.width && (uint64)from % sizeof(Group<T, 4>) == 0) {
        Group<T, 4> read = *(const Group<T, 4> *)from;
        for (int k = 0; k < 4; ++k)
            found.values[k] = read.values[k];
    } else {
        for (int k = 0; k < 4; ++k)
            if (column + k < rows.width)
                found.values[k] = from[k];
    }
    return found;
}

// tile = the products of 64 rows of x and 64 rows of y; thread (x, y) has columns 4 x to 4 x + 3.
__device__ inline void multiply_rows(const Rows &x, const Rows &y, A (&tile)[EACH][EACH], A *stage)
{
    A *left = stage, *right = stage + DEPTH * PITCH;
    int across = threadIdx.x % SIDE * EACH, down = threadIdx.x / SIDE * EACH;
    for (int i = 0; i < EACH; ++i)
        for (int j = 0; j < EACH; ++j)
            tile[i][j] = 0;
    for (int64 begin = 0; begin < x.width; begin += DEPTH) {
        __syncthreads();
        for (int i = threadIdx.x; i < TILE * DEPTH / 4; i += TILE_THREADS) { // lanes write next to each other
            int row = i % TILE, k = i / TILE * 4;
            Group<A, 4> of_x = read_four(x, row, begin + k), of_y = read_four(y, row, begin + k);
            for (int l = 0; l < 4; ++l) {
                left[(k + l) * PITCH + row] = of_x.values[l];
                right[(k + l) * PITCH + row] = of_y.values[l];
            }
        }
        __syncthreads();
#pragma unroll 8
        for (int k = 0; k < DEPTH; ++k) {
            Group<A, EACH> a = *(Group<A, EACH> *)(left + k * PITCH + down);
            Group<A, EACH> b = *(Group<A, EACH> *)(right + k * PITCH + across);
            for (int i = 0; i < EACH; ++i)
                for (int j = 0; j < EACH; ++j)
                    tile[i][j] += a.values[i] * b.values[j];
        }
    }
}

// A thread's columns of a tile of sums, STEPS times STEP neighbours.
typedef A Sums[EACH][STEPS][STEP];

// Column of D that is `n` of step `s` of this thread.
__device__ inline int column_of(int s, int n)
{
    return (s * SIDE + threadIdx.x % SIDE) * STEP + n;
}

// sums += the tile (64 rows, 64 columns), or if `transposed` its transpose, times 64 rows of y, of which D columns from
// `column` on are used.
template <bool transposed>
__device__ void multiply_tile(const A (&tile)[EACH][EACH], const Rows &y, int64 column, Sums &sums, A *weights,
                              A *stage)
{
    int across = threadIdx.x % SIDE * EACH, down = threadIdx.x / SIDE * EACH;
    for (int i = 0; i < EACH; ++i) {
        Group<A, EACH> row;
        for (int j = 0; j < EACH; ++j)
            row.values[j] = transposed ? tile[j][i] : tile[i][j];
        *(Group<A, EACH> *)(weights + (transposed ? (across + i) * PITCH + down : (down + i) * PITCH + across)) = row;
    }
    for (int begin = 0; begin < TILE && begin < y.count; begin += STAGED) {
        __syncthreads();
        for (int i = threadIdx.x; i < STAGED * D / 4; i += TILE_THREADS) {
            int row = i / (D / 4), k = i % (D / 4) * 4;
            *(Group<A, 4> *)(stage + row * D + k) = read_four(y, begin + row, column + k);
        }
        __syncthreads();
        for (int k = 0; k < STAGED && begin + k < TILE; k += EACH) {
            Group<A, EACH> w[EACH];
            for (int i = 0; i < EACH; ++i)
                w[i] = *(Group<A, EACH> *)(weights + (down + i) * PITCH + begin + k);
            for (int l = 0; l < EACH; ++l)
                for (int s = 0; s < STEPS; ++s) {
                    Group<A, STEP> v = *(Group<A, STEP> *)(stage + (k + l) * D + column_of(s, 0));
                    for (int i = 0; i < EACH; ++i)
                        for (int n = 0; n < STEP; ++n)
                            sums[i][s][n] += w[i].values[l] * v.values[n];
                }
        }
    }
    __syncthreads(); // weights may be written again
}

// Write sums, each row times its factor, into a matrix of `width` columns whose rows are `stride` elements apart.
__device__ inline void write_sums(const Sums &sums, const A (&factors)[EACH], T *to, int64 stride, int64 first,
                                  int64 count, int64 column, int64 width)
{
    for (int i = 0; i < EACH; ++i) {
        int64 row = first + threadIdx.x / SIDE * EACH + i;
        for (int s = 0; s < STEPS; ++s)
            for (int n = 0; n < STEP; ++n)
                if (row < count && column + column_of(s, n) < width)
                    to[row * stride + column + column_of(s, n)] = sums[i][s][n] * factors[i];
    }
}
