/* The processor's caches. */
#ifndef COREFW_CACHES_H
#define COREFW_CACHES_H

#include <sys/types.h>

/* The bytes of a core's second-level cache, found when the library is loaded; 0 if they are not known. */
ssize_t second_cache(void);

#endif
