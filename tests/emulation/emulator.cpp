// The machine that emulator.h declares: one library runs the blocks of the kernels in all others, which are the smaller and
// the sooner compiled for it.

dim3 threadIdx, blockIdx, blockDim, gridDim;
bool emulated_backwards;

namespace emulator {

constexpr int STACK = 1 << 18;

Fiber *current;
alignas(16) char dynamic[232448];
alignas(16) char exchanged[MOST_THREADS][32];

static Fiber fibers[MOST_THREADS];
static char *stacks[MOST_THREADS];
static jmp_buf scheduler;
static void (*body)(void *);
static void *argument;
static Fiber *of_thread[MOST_THREADS]; // null of those that are done

static void pause()
{
    if (!_setjmp(current->state))
        _longjmp(scheduler, 1);
}

static void run_fiber()
{
    for (;;) {
        body(argument);
        current->done = true;
        pause();
    }
}

static void resume(Fiber &fiber)
{
    current = &fiber;
    unsigned t = fiber.thread;
    threadIdx = {t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y};
    if (_setjmp(scheduler))
        return;
    if (fiber.begun)
        _longjmp(fiber.state, 1);
    int index = &fiber - fibers;
    if (!stacks[index])
        stacks[index] = (char *)malloc(STACK);
    getcontext(&fiber.first);
    fiber.first.uc_stack.ss_sp = stacks[index];
    fiber.first.uc_stack.ss_size = STACK;
    fiber.begun = true;
    makecontext(&fiber.first, run_fiber, 0);
    setcontext(&fiber.first);
}

void wait_block()
{
    current->waiting = AT_BLOCK;
    pause();
}

void wait_warp(unsigned mask)
{
    current->waiting = AT_WARP;
    current->lane_mask = mask;
    pause();
}

// Runs the threads of a warp until each waits for the block or is done; whether any of them ran.
static bool run_warp(int warp, int threads, bool reversed, int &left)
{
    bool moved = false, ran = true;
    int end = min(warp + 32, threads);
    while (ran) {
        for (int t = warp; t < end; ++t) { // lanes of a mask that all wait at the warp's barrier go on
            if (!of_thread[t] || of_thread[t]->waiting != AT_WARP)
                continue;
            unsigned mask = of_thread[t]->lane_mask;
            bool all = true;
            for (int u = warp; u < end; ++u)
                if (mask >> (u - warp) & 1 && of_thread[u])
                    all &= of_thread[u]->waiting == AT_WARP && of_thread[u]->lane_mask == mask;
            for (int u = warp; u < end && all; ++u)
                if (mask >> (u - warp) & 1 && of_thread[u])
                    of_thread[u]->waiting = NOWHERE;
        }
        ran = false;
        for (int i = warp; i < end; ++i) {
            int t = reversed ? warp + end - 1 - i : i;
            Fiber *fiber = of_thread[t];
            if (!fiber || fiber->waiting != NOWHERE)
                continue;
            moved = ran = true;
            resume(*fiber);
            if (fiber->done) {
                of_thread[t] = nullptr;
                --left;
            }
        }
    }
    return moved;
}

// The threads of one block, warp by warp, so that what warps do to each other without a barrier shows; false if some
// wait for others that never come.
static bool run_block(int threads, bool reversed)
{
    int fibers_used = 0, left = threads;
    for (int i = 0; i < threads; ++i) { // until the first barrier; a fiber that ends at once serves the next thread
        Fiber *fiber = &fibers[fibers_used];
        fiber->thread = reversed ? threads - 1 - i : i;
        fiber->done = false;
        fiber->waiting = NOWHERE;
        resume(*fiber);
        of_thread[fiber->thread] = fiber->done ? nullptr : fiber;
        if (fiber->done)
            --left;
        else
            ++fibers_used;
    }
    while (left) {
        bool moved = false;
        bool whole_block = true;
        for (int t = 0; t < threads; ++t)
            whole_block &= !of_thread[t] || of_thread[t]->waiting == AT_BLOCK;
        if (whole_block)
            for (int t = 0; t < threads; ++t)
                if (of_thread[t])
                    of_thread[t]->waiting = NOWHERE;
        for (int i = 0, warps = (threads + 31) / 32; i < warps; ++i)
            moved |= run_warp((reversed ? warps - 1 - i : i) * 32, threads, reversed, left);
        if (!moved) {
            for (int i = 0; i < fibers_used; ++i)
                fibers[i].begun = false; // what they hold is given up
            return false;
        }
    }
    return true;
}

bool launch(dim3 grid, dim3 block, void (*function)(void *), void *arguments)
{
    body = function;
    argument = arguments;
    gridDim = grid;
    blockDim = block;
    size_t blocks = size_t(grid.x) * grid.y * grid.z;
    for (size_t i = 0; i < blocks; ++i) {
        size_t index = emulated_backwards ? blocks - 1 - i : i;
        blockIdx = {unsigned(index % grid.x), unsigned(index / grid.x % grid.y), unsigned(index / grid.x / grid.y)};
        if (!run_block(block.x * block.y * block.z, index % 2 != emulated_backwards))
            return false;
    }
    return true;
}

} // namespace emulator
