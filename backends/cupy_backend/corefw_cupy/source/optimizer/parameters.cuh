// Lists of tensors that one launch works on: a table of their memory that is passed by value, and the walk over it.

#include "elementwise/elementwise.cuh"

#define TABLE_BYTES 3840 // of the 4096 that the parameters of a kernel have; as in parameter_lists.py
#define CHUNK 4096 // elements of a tensor that one block works on; as there

// For each tensor the addresses of its arrays, its rates (what is not the same in each step) and its number of
// elements; and the first of its blocks.
template <int arrays, int rates> struct Table {
    static const int rows = arrays + rates + 1, most = (TABLE_BYTES - 8) / (8 * rows + 4);
    int64 words[rows][most];
    int32 first_blocks[most + 1]; // those after the last tensor are greater than any block

    __device__ T *array(int k, int tensor) const { return (T *)words[k][tensor]; }
    __device__ double rate(int k, int tensor) const { return __longlong_as_double(words[arrays + k][tensor]); }
    __device__ int64 count(int tensor) const { return words[arrays + rates][tensor]; }

    // The tensor that a block works on: the last one that begins there or before.
    __device__ int tensor_of(int block) const
    {
        int first = 0, end = most;
        while (end - first > 1) {
            int middle = (first + end) / 2;
            if (first_blocks[middle] <= block)
                first = middle;
            else
                end = middle;
        }
        return first;
    }
};

// What a block works on.
struct Chunk {
    int tensor;
    int64 begin, end;

    template <int arrays, int rates> __device__ Chunk(const Table<arrays, rates> &table)
    {
        tensor = table.tensor_of(blockIdx.x);
        begin = (int64)(blockIdx.x - table.first_blocks[tensor]) * CHUNK;
        end = begin + CHUNK < table.count(tensor) ? begin + CHUNK : table.count(tensor);
    }
};

// Change tensors in place: rule.step(x, rate) changes an element of each array of a tensor, by the tensor's rates. The
// second array is only read. Rates that were computed on the device (rates.cu) stand in `computed`, tensor by tensor.
template <int arrays, int rates, class Rule>
__device__ void update(const Table<arrays, rates> &table, const double *computed, const Rule &rule)
{
    const int width = 16 / sizeof(T);
    Chunk chunk(table);
    A rate[rates ? rates : 1];
    for (int k = 0; k < rates; ++k)
        rate[k] = computed ? computed[chunk.tensor * rates + k] : table.rate(k, chunk.tensor);
    T *data[arrays];
    bool even = true;
    for (int k = 0; k < arrays; ++k) {
        data[k] = table.array(k, chunk.tensor);
        even = even && aligned<width>(data[k]);
    }
    for (int64 first = chunk.begin + threadIdx.x * width; first < chunk.end; first += blockDim.x * width) {
        bool whole = even && first + width <= chunk.end;
        T values[arrays][width];
        for (int k = 0; k < arrays; ++k)
            fetch(data[k], first, chunk.end, false, whole, values[k]);
        for (int i = 0; i < width; ++i) {
            A x[arrays];
            for (int k = 0; k < arrays; ++k)
                x[k] = values[k][i];
            rule.step(x, rate);
            for (int k = 0; k < arrays; ++k)
                values[k][i] = x[k];
        }
        for (int k = 0; k < arrays; ++k)
            if (k != 1)
                deposit(data[k], first, chunk.end, whole, values[k]);
    }
}
