// Adding values to the elements at given positions, where each position stands for a row: four neighbours at once. Worth
// it from compute capability 9.0 on, where that is one transaction.

#include "indexing/positions.cuh"
#include "indexing/combining.cuh"
#include "core/packs.cuh"

extern "C" __global__ void add_fours_at(float32 *array, const I *index, const V *values, Walk walk, float64 factor,
                                        int64 *device_asserts, int64 kind)
{
    Element element(walk, index, device_asserts, kind);
    if (!element.exists)
        return;
    Packed<V, 4> pack = read<4>(values + element.other);
    float32 changes[4];
    for (int k = 0; k < 4; ++k)
        changes[k] = float32(pack.values[k]) * float32(factor);
    add_four(array + element.array, changes);
}
