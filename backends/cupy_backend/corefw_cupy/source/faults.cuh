// What a kernel found wrong: the first report stands until the host reads it (faults.py).

__device__ inline void report(int64 *faults, int64 kind, int64 first, int64 second, int64 third)
{
    if (atomicCAS((uint64 *)faults, 0ull, (uint64)kind) == 0) {
        faults[1] = first;
        faults[2] = second;
        faults[3] = third;
    }
}

// The position that `index` means, negative ones counted from the end; -1, and a report, if it is out of bounds.
__device__ inline int64 position(int64 index, int64 size, int64 dim, int64 *faults, int64 kind)
{
    if (index >= -size && index < size)
        return index < 0 ? index + size : index;
    report(faults, kind, index, dim, size);
    return -1;
}
