// The variables of the block that runs, which emulator.h declares: one library has them for those of all kernels.

dim3 threadIdx, blockIdx, blockDim, gridDim;
bool emulated_backwards;

namespace emulator {

Fiber fibers[MOST_THREADS];
char *stacks[MOST_THREADS];
jmp_buf scheduler;
Fiber *current;
void (*body)(void *);
void *argument;
alignas(16) char dynamic[232448];
alignas(16) char exchanged[MOST_THREADS][32];
Fiber *of_thread[MOST_THREADS];

} // namespace emulator
