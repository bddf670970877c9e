// The product of matrices that a convolution is, as one block sees it: a tile of the result of one group, whose factors
// are gathered slab by slab. Forward, rows are channels of the result, columns places, and taps are summed over; in the
// gradient of the kernel (`weight_gradient`), columns are taps, and places are summed over.

#include "convolution/convolution.cuh"

#define THREADS 256

typedef Sum<T>::type Number;

template <bool weight_gradient_, int rows_, int columns_, int depth_> struct Product {
    static const bool weight_gradient = weight_gradient_;
    static const int rows = rows_, columns = columns_, depth = depth_;
    static const int of_left = rows * depth / THREADS, of_image = columns * depth / THREADS; // that a thread loads

    struct Parts { // in shared memory: what the sum's indices and the columns contribute
        Part inner[2][depth], columns[Product::columns];
    };

    const Convolution &c;
    Parts &parts;
    const T *image, *left;
    uint32 group, first_row, first_column, width, first, last;
    int thread;
    T from_left[of_left], from_image[of_image]; // of a slab that is on its way

    __device__ Product(const T *images, const T *lefts, const Convolution &c, Parts &parts)
        : c(c), parts(parts), thread(threadIdx.x)
    {
        uint32 places = count_places(c), taps = count_taps(c);
        width = weight_gradient ? taps : places;
        uint32 tiles_down = (c.rows + rows - 1) / rows, tiles_across = (width + columns - 1) / columns;
        first_row = blockIdx.x % tiles_down * rows;
        first_column = blockIdx.x / tiles_down % tiles_across * columns;
        group = blockIdx.x / tiles_down / tiles_across;
        image = images + group * c.image_group;
        left = lefts + (weight_gradient ? c.place_offset + group * c.place_group : c.tap_offset + group * c.tap_group) +
               first_row * left_row();
        own_range(weight_gradient ? places : taps, depth, first, last);
    }

    // From one row to the next; asked for where they are used, for registers that hold them are lacking elsewhere.
    __device__ int64 left_row() const { return weight_gradient ? c.place_row : c.tap_row; }
    __device__ int64 out_row() const { return weight_gradient ? c.tap_row : c.place_row; }

    __device__ int slabs() const { return (last - first + depth - 1) / depth; }

    __device__ void describe_columns()
    {
        for (int i = thread; i < columns; i += THREADS) {
            uint32 column = first_column + i;
            parts.columns[i] = column >= width ? nowhere() : weight_gradient ? tap(c, column) : place(c, column);
        }
    }

    // Must have happened, before a barrier, when a slab is loaded.
    __device__ void describe(int slab)
    {
        uint32 index = first + slab * depth + thread;
        if (thread < depth)
            parts.inner[slab % 2][thread] = index >= last ? nowhere() : weight_gradient ? place(c, index) : tap(c, index);
    }

    // Which elements of a slab the thread loads: neighbouring threads read neighbouring elements of kernels, and
    // neighbouring places of images.
    __device__ int left_depth(int i) const { return (thread + i * THREADS) % depth; }
    __device__ int left_line(int i) const { return (thread + i * THREADS) / depth; }
    __device__ int image_depth(int i) const
    {
        return weight_gradient ? (thread + i * THREADS) % depth : (thread + i * THREADS) / columns;
    }
    __device__ int image_line(int i) const
    {
        return weight_gradient ? (thread + i * THREADS) / depth : (thread + i * THREADS) % columns;
    }

    __device__ void load(int slab)
    {
        const Part(&inner)[depth] = parts.inner[slab % 2];
        uint32 begin = first + slab * depth;
        T zero = {};
#pragma unroll
        for (int i = 0; i < of_left; ++i) {
            int k = left_depth(i), row = left_line(i);
            bool inside = begin + k < last && first_row + row < c.rows;
            from_left[i] = inside ? left[inner[k].other + row * left_row()] : zero;
        }
#pragma unroll
        for (int i = 0; i < of_image; ++i)
            from_image[i] = seen(image, c, inner[image_depth(i)], parts.columns[image_line(i)]);
    }

    // The first slab is loaded and stored, the second one described.
    template <class Store> __device__ void begin(Store store)
    {
        describe_columns();
        describe(0);
        describe(1);
        __syncthreads();
        load(0);
        store(0);
        __syncthreads();
    }

    // Write a sum: to the part of the grid's y-coordinate if sums are split, else with the bias to the result.
    __device__ void put(int row, int column, Number sum, const T *bias, T *out, Number *partial, int64 total) const
    {
        if (first_column + column >= width || first_row + row >= c.rows)
            return;
        int64 start = weight_gradient ? c.tap_offset + group * c.tap_group : c.place_offset + group * c.place_group;
        int64 at = start + parts.columns[column].other + (first_row + row) * out_row();
        if (partial)
            partial[blockIdx.y * total + at] = sum;
        else
            out[at] = (T)(bias ? sum + (Number)bias[group * c.rows + first_row + row] : sum);
    }
};
