// What the kernels of attention share: where the matrices of a head lie, and which scores count.

#include "core/types.cuh"
#include "core/block.cuh"

typedef Compute<T>::type A;

#define MAX_BATCH 8

// Where the matrices of an operand lie, in elements.
struct Operand {
    int64 row, column, batch[MAX_BATCH];
};

// The sizes of a head, the dimensions that tell heads apart, and the operands (attention.py).
struct Attention {
    int64 heads, queries, keys, width, value_width, dims, sizes[MAX_BATCH];
    Operand query, key, value, bias, gradient, output, grad_query, grad_key, grad_value;
};

// Rows of a matrix, each without gaps.
struct Rows {
    const T *data;
    int64 stride, count, width;

    // Those from `first` on.
    __device__ Rows from(int64 first) const { return {data + first * stride, stride, count - first, width}; }
};

// The matrix of a head. A grid's size is of 32 bits, and so are numbers of heads.
template <class Element>
__device__ Element *matrix_of(const Attention &of, const Operand &operand, Element *data, int64 head)
{
    uint32 left = head;
    for (int dim = of.dims - 1; dim >= 0; --dim) {
        uint32 size = of.sizes[dim], outer = left / size;
        data += (left - outer * size) * operand.batch[dim];
        left = outer;
    }
    return data;
}

__device__ inline Rows rows_of(const Attention &of, const Operand &operand, const T *data, int64 head, int64 count,
                               int64 width)
{
    return {matrix_of(of, operand, data, head), operand.row, count, width};
}

// The scores of one head beside the product of queries and keys.
struct Scores {
    const T *bias; // of the head, or null
    int64 row, column, queries, keys;
    bool causal;
    A scale;

    // Whether a query attends to a key.
    __device__ bool allowed(int64 query, int64 key) const
    {
        return query < queries && key < keys && (!causal || key <= query);
    }

    __device__ A added(int64 query, int64 key) const { return bias[query * row + key * column]; }

    // The score of an allowed pair, -inf of others.
    __device__ A of(int64 query, int64 key, A product) const
    {
        if (!allowed(query, key))
            return -INFINITY;
        return product * scale + (bias ? added(query, key) : 0);
    }
};

__device__ inline Scores scores_of(const Attention &of, const T *bias, int64 head, bool causal, double scale)
{
    const T *matrix = bias ? matrix_of(of, of.bias, bias, head) : bias;
    return {matrix, of.bias.row, of.bias.column, of.queries, of.keys, causal, A(scale)};
}

// The head and the first row of a block's tile of `rows` rows; tiles with the most work come first.
struct Place {
    int64 head, first;
};

__device__ inline Place place_of(const Attention &of, int64 count, int rows, bool last_first)
{
    int64 tiles = (count + rows - 1) / rows, tile = blockIdx.x / (uint32)of.heads;
    return {blockIdx.x % (uint32)of.heads, (last_first ? tiles - 1 - tile : tile) * rows};
}
