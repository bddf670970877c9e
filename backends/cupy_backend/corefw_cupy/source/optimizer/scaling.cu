// The scaling of a list of tensors in place.

#include "optimizer/parameters.cuh"

extern "C" __global__ void scale_step(Table<1, 0> table, const T *factor)
{
    const int width = 16 / sizeof(T);
    A scale = *factor;
    if (scale == A(1)) // nothing is clipped
        return;
    Chunk chunk(table);
    T *data = table.array(0, chunk.tensor);
    bool even = aligned<width>(data);
    for (int64 first = chunk.begin + threadIdx.x * width; first < chunk.end; first += blockDim.x * width) {
        bool whole = even && first + width <= chunk.end;
        T values[width];
        fetch(data, first, chunk.end, false, whole, values);
        for (int i = 0; i < width; ++i)
            values[i] = (A)values[i] * scale;
        deposit(data, first, chunk.end, whole, values);
    }
}
