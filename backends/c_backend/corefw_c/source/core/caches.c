/* The processor's caches, as it describes them. */
#include "core/caches.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

static ssize_t second;

/* Asked for once: a virtual machine answers slowly. */
__attribute__((constructor)) static void ask(void) {
#if defined(__x86_64__)
    enum { SECOND_LEVEL = 0x80000006 }; /* Intel's and AMD's processors tell its size alike */
    unsigned eax, ebx, ecx, edx;
    if (__get_cpuid(SECOND_LEVEL, &eax, &ebx, &ecx, &edx)) second = (ssize_t)(ecx >> 16) << 10;
#endif
}

ssize_t second_cache(void) { return second; }
