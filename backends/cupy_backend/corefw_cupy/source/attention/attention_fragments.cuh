// Products of tiles by tensor cores. A block of 4 warps owns a tile of rows, one or more strips of 16 for each warp;
// tiles of other matrices pass through shared memory, from where what is read serves all strips of a warp. Rows there
// have D columns, beyond the width of a matrix zeros.

#include "attention/attention.cuh"
#include "core/mma.cuh"

const int WARPS = 4, FRAGMENT_THREADS = WARPS * WARP;
const int PITCH = D + 8; // of rows in shared memory: eight of them, 16 bytes of each, lie in different banks

const float LOG2_E = 1.4426950408889634f, LN_2 = 0.6931471805599453f;

// Rows 0 to `count` - 1 into shared memory, zeros where there are none; complete after wait_for_copies and a barrier.
__device__ inline void load_tile(const Rows &rows, int count, T *tile)
{
    const int chunks = D / 8;
    bool aligned = (uint64)rows.data % 16 == 0 && rows.stride % 8 == 0 && rows.width % 8 == 0;
    for (int i = threadIdx.x; i < count * chunks; i += FRAGMENT_THREADS) {
        int row = i / chunks, column = i % chunks * 8;
        const T *from = rows.data + row * rows.stride + column;
        T *to = tile + row * PITCH + column;
        if (aligned) {
            bool exists = row < rows.count && column < rows.width;
            copy_later(to, exists ? from : rows.data, exists);
        } else {
            for (int k = 0; k < 8; ++k)
                to[k] = row < rows.count && column + k < rows.width ? from[k] : T(0.0f);
        }
    }
    end_of_copies();
}

// products = a warp's rows of the block's own tile times the rows of another tile. Own rows are read again for each
// tile: registers hold sums.
template <int strips, int tiles>
__device__ void multiply_rows(const T *own, const T *other, float (&products)[strips][tiles][4])
{
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const T *left = own + (warp * 16 * strips + lane % 16) * PITCH + lane / 16 * 8;
    const T *right = other + (lane / 16 * 8 + lane % 8) * PITCH + lane / 8 % 2 * 8;
#pragma unroll
    for (int strip = 0; strip < strips; ++strip)
        for (int n = 0; n < tiles; ++n)
            for (int i = 0; i < 4; ++i)
                products[strip][n][i] = 0;
#pragma unroll
    for (int k = 0; k < D / 16; ++k) {
        uint32 rows[strips][4];
#pragma unroll
        for (int strip = 0; strip < strips; ++strip)
            load_fragments<false>(rows[strip], left + strip * 16 * PITCH + k * 16);
#pragma unroll
        for (int n = 0; n < tiles; n += 2) {
            uint32 found[4];
            load_fragments<false>(found, right + n * 8 * PITCH + k * 16);
#pragma unroll
            for (int strip = 0; strip < strips; ++strip) {
                multiply_fragments<T>(products[strip][n], rows[strip], {found[0], found[1]});
                multiply_fragments<T>(products[strip][n + 1], rows[strip], {found[2], found[3]});
            }
        }
    }
}

// sums += the weights, rounded to T, times a tile with one row for each of them.
template <int strips, int tiles>
__device__ void multiply_weights(const float (&weights)[strips][tiles][4], const T *tile,
                                 float (&sums)[strips][D / 8][4])
{
    int lane = threadIdx.x % WARP;
    const T *row = tile + lane % 16 * PITCH + lane / 16 * 8;
    __syncwarp(); // lanes may have come here by different ways
#pragma unroll
    for (int k = 0; k < tiles; k += 2) {
        uint32 left[strips][4];
#pragma unroll
        for (int strip = 0; strip < strips; ++strip)
            for (int i = 0; i < 4; ++i) { // what C holds is just what A wants
                const float *pair = weights[strip][k + i / 2] + i % 2 * 2;
                left[strip][i] = pack<T>(pair[0], pair[1]);
            }
#pragma unroll
        for (int n = 0; n < D / 8; n += 2) {
            uint32 found[4];
            load_fragments<true>(found, row + k * 8 * PITCH + n * 8);
#pragma unroll
            for (int strip = 0; strip < strips; ++strip) {
                multiply_fragments<T>(sums[strip][n], left[strip], {found[0], found[1]});
                multiply_fragments<T>(sums[strip][n + 1], left[strip], {found[2], found[3]});
            }
        }
    }
}

// The first row of the block's tile that a thread holds products of; others are 8 below, and 16 in the next strip.
template <int strips> __device__ int own_row()
{
    return threadIdx.x / WARP * 16 * strips + threadIdx.x % WARP / 4;
}

// The column of product `i` of fragment `n`.
__device__ inline int column_of(int n, int i)
{
    return n * 8 + threadIdx.x % 4 * 2 + i % 2;
}

// Turn the products of a strip into scores times LOG2_E, -inf of pairs that are not allowed. Its rows are queries, of
// which a thread has `first` and that 8 below, and its columns keys from `begin` to `end`; or if `transposed` rows are keys
// and columns queries.
template <bool transposed, int tiles>
__device__ void score(const Scores &scores, int64 first, int64 begin, int64 end, float (&products)[tiles][4])
{
    const int width = tiles * 8;
    float scale = scores.scale * LOG2_E;
    int known = min(end - begin, (int64)width);
    int diagonal = max(min(first - begin, (int64)width), -16ll); // where the first row meets it, or beyond the tile
    for (int half = 0; half < 2; ++half) {
        int64 row = first + 8 * half;
        int from = 0, to = transposed && row >= scores.keys ? 0 : known; // the columns that are allowed
        if (scores.causal && transposed)
            from = diagonal + 8 * half;
        if (scores.causal && !transposed)
            to = min(diagonal + 8 * half + 1, known);
        for (int n = 0; n < tiles; ++n)
            for (int i = 2 * half; i < 2 * half + 2; ++i) {
                int column = column_of(n, i);
                products[n][i] = column < from || column >= to ? -INFINITY : products[n][i] * scale;
            }
        if (scores.bias && (transposed || row < scores.queries)) {
            int64 step = transposed ? scores.row : scores.column;
            const T *bias = scores.bias + row * (transposed ? scores.column : scores.row);
            bias += (begin + column_of(0, 0)) * step;
            for (int n = 0; n < tiles; ++n, bias += 8 * step)
                for (int i = 0; i < 2; ++i)
                    if (column_of(n, i) >= from && column_of(n, i) < to)
                        products[n][2 * half + i] += bias[i * step] * LOG2_E;
        }
    }
}

// Write the sums of a strip, each row times its factor, into a matrix of `width` columns whose rows are `stride`
// elements, a multiple of that, apart.
__device__ inline void write_sums(const float (&sums)[D / 8][4], float upper, float lower, T *to, int64 stride,
                                  int64 first, int64 count, int64 width)
{
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        int64 row = first + half * 8;
        float factor = half ? lower : upper;
        if (row >= count)
            continue;
#pragma unroll
        for (int n = 0; n < D / 8; ++n) {
            int column = column_of(n, 0);
            float a = sums[n][2 * half] * factor, b = sums[n][2 * half + 1] * factor;
            T *at = to + row * stride + column;
            if (column + 1 < width && width % 2 == 0)
                *(uint32 *)at = pack<T>(a, b);
            else
                for (int k = 0; k < 2; ++k)
                    if (column + k < width)
                        at[k] = k ? b : a;
        }
    }
}
