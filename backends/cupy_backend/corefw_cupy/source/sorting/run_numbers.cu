// The numbers of runs of equal lines, where they start, and how long they are.

#include "indexing/masks.cuh"

// For each line the number of its run, for each run its start and its first line.
extern "C" __global__ void number_runs(const bool *begins, int64 n, const int64 *ranks, const int64 *order,
                                       int64 *numbers, int64 *starts, int64 *lines)
{
    Marks marks = own_marks(begins, n);
    int64 first = ((int64)blockIdx.x * blockDim.x + threadIdx.x) * MARKS, total;
    int64 run = ranks[blockIdx.x] + sum_before(number_of(marks), total) - 1;
    for (int64 i = first; i < first + MARKS && i < n; ++i) {
        int64 line = order ? order[i] : i;
        if (marks.values[i - first]) {
            ++run;
            starts[run] = i;
            lines[run] = line;
        }
        numbers[line] = run;
    }
}

extern "C" __global__ void measure_runs(const int64 *starts, int64 runs, int64 n, int64 *lengths)
{
    int64 run = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (run < runs)
        lengths[run] = (run + 1 < runs ? starts[run + 1] : n) - starts[run];
}
