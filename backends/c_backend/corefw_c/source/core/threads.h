/* Work shared between threads. */
#ifndef COREFW_THREADS_H
#define COREFW_THREADS_H

#include <sys/types.h>

/* Work on the items begin <= i < end. */
typedef void (*range_task)(void *context, ssize_t begin, ssize_t end);

/* Run `task` over 0 <= i < n, in pieces of at least `grain` items, on as many threads as that makes worthwhile; a grain is
 * worth 5 to 20 microseconds of work. Runs in the calling thread alone while the pool is busy, and inside another task. */
void parallel_for(ssize_t n, ssize_t grain, range_task task, void *context);

/* The items of a piece that is worth a thread when one item costs `cost` elementary steps (a load, an addition). */
static inline ssize_t grain_for(ssize_t cost) { return cost >= 65536 ? 1 : 65536 / (cost > 0 ? cost : 1); }

/* The same of loops over vectors, each of whose steps takes a part of the time. */
static inline ssize_t vector_grain_for(ssize_t cost) { return (grain_for(cost) + 1) / 2; }

/* How many threads the next parallel_for may use: for kernels that give each its own scratch memory. */
int thread_count(void);

#endif
