// What a kernel found wrong: the first report stands until the host reads it (device_asserts.py).

__device__ inline void report(int64 *device_asserts, int64 kind, int64 first, int64 second, int64 third)
{
    if (atomicCAS((uint64 *)device_asserts, 0ull, (uint64)kind) == 0) {
        device_asserts[1] = first;
        device_asserts[2] = second;
        device_asserts[3] = third;
    }
}

// The position that `index` means, negative ones counted from the end; -1, and a report, if it is out of bounds.
__device__ inline int64 position(int64 index, int64 size, int64 dim, int64 *device_asserts, int64 kind)
{
    if (index >= -size && index < size)
        return index < 0 ? index + size : index;
    report(device_asserts, kind, index, dim, size);
    return -1;
}
