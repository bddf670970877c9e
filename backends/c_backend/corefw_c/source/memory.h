/* Memory for arrays and for scratch, kept when it is freed: fresh pages cost more than most kernels. */
#ifndef COREFW_MEMORY_H
#define COREFW_MEMORY_H

#include <stddef.h>

/* A block of at least `size` bytes at a multiple of 64, of arbitrary content; NULL if there is none. */
void *allocate(size_t size);

/* Give a block back to the cache. NULL is ignored. */
void release(void *block);

#endif
