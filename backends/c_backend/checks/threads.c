/* Jobs from several threads at once, forks between them, and blocks that change hands: for ThreadSanitizer. */
#include "kernels.h"
#include "core/memory.h"
#include "core/threads.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CALLERS = 4, JOBS = 300, ITEMS = 10000 };

static void count(void *items, ssize_t begin, ssize_t end) {
    for (ssize_t i = begin; i < end; i++) ((int *)items)[i]++;
}

static void nested(void *items, ssize_t begin, ssize_t end) {

    parallel_for(end - begin, 1, count, (int *)items + begin);
}

/* Every item must have been worked on once per job. */
static void *call(void *unused) {
    (void)unused;
    for (int job = 0; job < JOBS; job++) {
        int *items = allocate(ITEMS * sizeof *items);
        for (int i = 0; i < ITEMS; i++) items[i] = job;
        parallel_for(ITEMS, 100, job % 2 ? count : nested, items);
        for (int i = 0; i < ITEMS; i++)
            if (items[i] != job + 1) {
                fprintf(stderr, "item %d was worked on %d times\n", i, items[i] - job);
                exit(1);
            }
        release(items);
    }
    return NULL;
}

int main(void) {
    set_thread_count(4);
    memory_handler(); /* which prepares the allocator for forks */
    pthread_t callers[CALLERS];
    for (int i = 0; i < CALLERS; i++) pthread_create(callers + i, NULL, call, NULL);
    for (int i = 0; i < CALLERS; i++) pthread_join(callers[i], NULL);
    pid_t child = fork();
    if (child == 0) {
        call(NULL);
        _exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    call(NULL);
    empty_cache();
    struct memory_statistics left = memory_statistics();
    if (status || left.in_use || left.cached) {
        fprintf(stderr, "child %d, in use %ld, cached %ld\n", status, (long)left.in_use, (long)left.cached);
        return 1;
    }
    return 0;
}
