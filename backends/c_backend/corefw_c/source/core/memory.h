/* Memory for arrays and for scratch, kept when it is freed: fresh pages cost more than most kernels. */
#ifndef COREFW_MEMORY_H
#define COREFW_MEMORY_H

#include <stddef.h>
#include <sys/types.h>

/* A block of at least `size` bytes at a multiple of 64, of arbitrary content; NULL if there is none. */
void *allocate(size_t size);

/* A block for `count` items of `size` bytes; NULL also if they are more than there can be (see sizes.h). */
static inline void *allocate_items(ssize_t count, size_t size) {
    size_t bytes;
    return count < 0 || __builtin_mul_overflow((size_t)count, size, &bytes) ? NULL : allocate(bytes);
}

/* Give a block back to the cache. NULL is ignored. */
void release(void *block);

#endif
