/* The machine's level. Compiled for every processor of its family, so that any can be asked. */
#include "kernels.h"

#include <errno.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

int machine_level(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi2")) return 2;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512cd") || !__builtin_cpu_supports("avx512dq") ||
        !__builtin_cpu_supports("avx512vl"))
        return 3;
    return 4;
#else
    return 0;
#endif
}

int machine_products(void) {
#if defined(__x86_64__)
    enum { TILES = 1 << 22 | 1 << 24 | 1 << 25, PAIRS = 1 << 5 }; /* AMX-BF16, AMX-TILE, AMX-INT8; AVX512-BF16 */
    enum { QUADS = 1 << 11 };                                     /* AVX512-VNNI */
    unsigned eax, ebx, ecx, edx;
    if (machine_level() < 4 || !__get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) || !(eax & PAIRS)) return BY_FLOATS;
    __cpuid_count(7, 0, eax, ebx, ecx, edx);
    if (!(ecx & QUADS)) return BY_FLOATS;
    return (edx & TILES) == TILES ? BY_TILES : BY_PAIRS;
#else
    return BY_FLOATS;
#endif
}

int permission_of_tiles(void) {
#if defined(__linux__) && defined(__x86_64__)
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XTILEDATA) ? errno : 0;
#else
    return ENOSYS;
#endif
}
