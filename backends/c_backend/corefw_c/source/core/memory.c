/* The caching allocator: blocks of four sizes per power of two, each with a list of the free ones.
 *
 * A header of 64 bytes before each block holds its class. NumPy uses the allocator through its handler of data memory
 * (NEP 49), so arrays made by any kernel, and by NumPy itself, come from it. */
#define _GNU_SOURCE
#include "core/memory.h"
#include "kernels.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

enum { ALIGNMENT = 64, SMALLEST = 64, CLASSES = 4 * 40, HUGE_PAGE = 1 << 21 };

struct header {
    int class;
    struct header *next; /* in the list of free blocks */
    _Alignas(ALIGNMENT) char data[];
};

static struct {
    atomic_flag lock;
    struct header *free[CLASSES];
    struct memory_statistics now;
    int64_t limit;
    bool poison;
} cache = {.lock = ATOMIC_FLAG_INIT, .limit = (int64_t)1 << 32};

static void lock(void) {
    while (atomic_flag_test_and_set_explicit(&cache.lock, memory_order_acquire)) sched_yield();
}

static void unlock(void) { atomic_flag_clear_explicit(&cache.lock, memory_order_release); }

static void unlock_in_child(void) { unlock(); }

/* The class of the smallest blocks that hold `size` bytes: 64, 80, 96, 112, 128, 160, 192, ... */
static int class_of(size_t size) {
    if (size <= SMALLEST) return 0;
    int octave = 63 - __builtin_clzll((unsigned long long)(size - 1)); /* 2^octave < size <= 2^(octave + 1) */
    size_t step = (size_t)1 << (octave - 2);
    return 4 * (octave - 6) + (int)((size - ((size_t)1 << octave) + step - 1) / step);
}

static size_t class_size(int class) { return ((size_t)(4 + class % 4) << (class / 4)) * (SMALLEST / 4); }

static struct header *fresh(int class) {
    size_t size = sizeof(struct header) + class_size(class);
    bool large = size >= HUGE_PAGE;
    size_t alignment = large ? HUGE_PAGE : ALIGNMENT;
    struct header *block = aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (block && large) madvise(block, size, MADV_HUGEPAGE);
#endif
    if (block) block->class = class;
    return block;
}

/* COREFW_POISON, asked for once, when the library is loaded. */
__attribute__((constructor)) static void read_environment(void) {
    const char *wanted = getenv("COREFW_POISON");
    cache.poison = wanted && !strcmp(wanted, "1");
}

/* What a caller gets: with poison, NaN and -1 wherever it reads before it has written. */
static void *handed_out(struct header *block) {
    if (__builtin_expect(cache.poison, false)) memset(block->data, 0xFF, class_size(block->class));
    return block->data;
}

void *allocate(size_t size) {
    if (size > (size_t)1 << 44) return NULL;
    int class = class_of(size);
    int64_t bytes = (int64_t)class_size(class);
    lock();
    struct header *block = cache.free[class];
    if (block) {
        cache.free[class] = block->next;
        cache.now.cached -= bytes;
        cache.now.hits++;
    }
    cache.now.allocations++;
    cache.now.in_use += bytes;
    if (cache.now.in_use > cache.now.peak) cache.now.peak = cache.now.in_use;
    unlock();
    if (block) return handed_out(block);
    block = fresh(class);
    if (!block) {
        empty_cache();
        block = fresh(class);
    }
    if (block) return handed_out(block);
    lock();
    cache.now.in_use -= bytes;
    unlock();
    return NULL;
}

static struct header *header_of(void *data) { return (struct header *)((char *)data - offsetof(struct header, data)); }

void release(void *data) {
    if (!data) return;
    struct header *block = header_of(data);
    int64_t bytes = (int64_t)class_size(block->class);
    lock();
    cache.now.in_use -= bytes;
    bool keep = cache.now.cached + bytes <= cache.limit;
    if (keep) {
        block->next = cache.free[block->class];
        cache.free[block->class] = block;
        cache.now.cached += bytes;
    }
    unlock();
    if (!keep) free(block);
}

void empty_cache(void) {
    for (int class = 0; class < CLASSES; class++) {
        lock();
        struct header *block = cache.free[class];
        cache.free[class] = NULL;
        for (struct header *b = block; b; b = b->next) cache.now.cached -= (int64_t)class_size(class);
        unlock();
        while (block) {
            struct header *next = block->next;
            free(block);
            block = next;
        }
    }
}

void set_cache_limit(int64_t bytes) { cache.limit = bytes; }

struct memory_statistics memory_statistics(void) {
    lock();
    struct memory_statistics now = cache.now;
    unlock();
    return now;
}

void reset_peak_memory(void) {
    lock();
    cache.now.peak = cache.now.in_use;
    unlock();
}

/* -- NumPy's handler (struct PyDataMem_Handler) -- */
static void *numpy_malloc(void *context, size_t size) {
    (void)context;
    return allocate(size);
}

static void *numpy_calloc(void *context, size_t count, size_t size) {
    (void)context;
    if (size && count > SIZE_MAX / size) return NULL;
    void *data = allocate(count * size);
    return data ? memset(data, 0, count * size) : NULL;
}

static void *numpy_realloc(void *context, void *data, size_t size) {
    (void)context;
    if (!data) return allocate(size);
    size_t held = class_size(header_of(data)->class);
    if (size <= held && size > held / 2) return data;
    void *moved = allocate(size);
    if (moved) {
        memcpy(moved, data, size < held ? size : held);
        release(data);
    }
    return moved;
}

static void numpy_free(void *context, void *data, size_t size) {
    (void)context, (void)size;
    release(data);
}

/* What is marked: the first page, and a line of each other one. Who writes to fresh memory fills it, and a trial tells
 * of who does not; to fill all of it would cost more than many kernels. */
enum { PAGE = 4096, LINE = 64 };

static size_t marked_from(size_t begin, size_t size) {
    size_t count = begin ? LINE : PAGE;
    return count < size - begin ? count : size - begin;
}

static void *numpy_malloc_marked(void *context, size_t size) {
    char *data = numpy_malloc(context, size);
    for (size_t at = 0; data && at < size; at += PAGE) memset(data + at, MARK, marked_from(at, size));
    return data;
}

_Bool is_marked(uintptr_t address, size_t size) {
    const char *data = (const void *)address;
    for (size_t at = 0; at < size; at += PAGE)
        for (size_t i = 0; i < marked_from(at, size); i++)
            if (data[at + i] != (char)MARK) return 0;
    return 1;
}

struct handler {
    char name[127];
    uint8_t version;
    struct {
        void *context;
        void *(*malloc)(void *, size_t);
        void *(*calloc)(void *, size_t, size_t);
        void *(*realloc)(void *, void *, size_t);
        void (*free)(void *, void *, size_t);
    } allocator;
};

static struct handler handler = {"corefw", 1, {NULL, numpy_malloc, numpy_calloc, numpy_realloc, numpy_free}};
static struct handler marking = {"corefw", 1, {NULL, numpy_malloc_marked, numpy_calloc, numpy_realloc, numpy_free}};

uintptr_t memory_handler(void) {
    static bool registered;
    if (!registered) registered = !pthread_atfork(NULL, NULL, unlock_in_child);
    return (uintptr_t)&handler;
}

uintptr_t marking_handler(void) { return (uintptr_t)&marking; }
