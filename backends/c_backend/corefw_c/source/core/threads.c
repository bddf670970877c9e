/* The thread pool: workers that wait for the next range of work, spinning for a moment before they sleep.
 *
 * Each thread has a part of the items, the same in every job of a size, so that it finds in its caches what it wrote before,
 * and takes pieces of the others' parts when its own is done. A worker that sees an open job joins it by counting
 * itself in; the caller works too, closes the job when nothing is left, and waits only for the workers that joined. A
 * worker that wakes up late thus delays nobody. A forked child starts with no workers and makes its own. */
#include "core/threads.h"
#include "kernels.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#if defined(__x86_64__)
#define PAUSE() __builtin_ia32_pause()
#else
#define PAUSE() sched_yield()
#endif

/* A worker spins for 200 us before it sleeps: one that sleeps takes 10 to 14 us to come, and the steps of a training
 * loop that one thread takes between jobs are shorter. In time, as a pause takes 40 ns on some processors and 10 on
 * others. */
enum {
    MAX_WORKERS = 255,
    SPINNING = 200000, /* ns */
    GLANCES = 64,
    SPINS = 4000,
    OPEN = 1 << 16,
    LONG = 4, /* grains of a job, of several items each, for which sleeping workers are woken */
};

static struct {
    atomic_flag busy;          /* held by the thread whose job runs */
    atomic_int state;          /* OPEN, plus the number of workers that joined */
    atomic_uint epoch;         /* counts jobs */
    atomic_int sleepers;
    struct part {
        _Alignas(64) _Atomic ssize_t next; /* the first item that nobody took */
        ssize_t end;
    } parts[MAX_WORKERS + 1];
    ssize_t piece;
    int threads;               /* with a part */
    atomic_int joinable;       /* how many workers the job takes */
    range_task task;
    void *context;
    int workers;               /* started */
    pthread_mutex_t mutex;
    pthread_cond_t wake;
} pool = {.busy = ATOMIC_FLAG_INIT, .mutex = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static atomic_int wanted = 1;         /* threads, the caller's included */
static _Thread_local bool inside;     /* this thread works on a job */

/* Work on the part of thread `own`, then on what is left of the others'. */
static void take_pieces(int own) {
    ssize_t piece = pool.piece;
    for (int i = 0; i < pool.threads; i++) {
        struct part *part = pool.parts + (own + i) % pool.threads;
        ssize_t begin, end = part->end;
        while ((begin = atomic_fetch_add_explicit(&part->next, piece, memory_order_relaxed)) < end)
            pool.task(pool.context, begin, begin + piece < end ? begin + piece : end);
    }
}

static int64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static unsigned await_epoch(unsigned seen) {
    unsigned epoch;
    for (int64_t end = nanoseconds() + SPINNING; nanoseconds() < end;)
        for (int i = 0; i < GLANCES; i++) {
            if ((epoch = atomic_load_explicit(&pool.epoch, memory_order_acquire)) != seen) return epoch;
            PAUSE();
        }
    pthread_mutex_lock(&pool.mutex);
    atomic_fetch_add(&pool.sleepers, 1);
    while ((epoch = atomic_load(&pool.epoch)) == seen) pthread_cond_wait(&pool.wake, &pool.mutex);
    atomic_fetch_sub(&pool.sleepers, 1);
    pthread_mutex_unlock(&pool.mutex);
    return epoch;
}

static void *work(void *number) {
    int own = (int)(intptr_t)number;
    inside = true;
    for (unsigned seen = 0;;) {
        seen = await_epoch(seen);
        int state = atomic_load(&pool.state);
        while (state & OPEN && (state & ~OPEN) < pool.joinable) {
            if (!atomic_compare_exchange_weak(&pool.state, &state, state + 1)) continue;
            take_pieces(own);
            atomic_fetch_sub_explicit(&pool.state, 1, memory_order_release);
            break;
        }
    }
    return NULL;
}

/* After a fork the child has none of the workers, and locks in whatever state they were. */
static void forget_workers(void) {
    pool.workers = 0;
    atomic_store(&pool.state, 0);
    atomic_store(&pool.sleepers, 0);
    atomic_flag_clear(&pool.busy);
    pthread_mutex_init(&pool.mutex, NULL);
    pthread_cond_init(&pool.wake, NULL);
}

static void start_workers(int count) {
    static bool registered;
    if (!registered) registered = !pthread_atfork(NULL, NULL, forget_workers);
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    sigset_t all, before; /* signals are the caller's */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (pool.workers < count) {
        pthread_t thread;
        if (pthread_create(&thread, &detached, work, (void *)(intptr_t)(pool.workers + 1))) break;
        pool.workers++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&detached);
}

/* Whether a job may be shared. To wake workers takes as long as a short job alone: it does only where another short one
 * came a moment ago, and more may follow. */
static bool is_worth_sharing(ssize_t n, ssize_t grain) {
    static _Atomic int64_t last;
    if (grain == 1 || n / grain >= LONG || !atomic_load_explicit(&pool.sleepers, memory_order_relaxed)) return true;
    int64_t now = nanoseconds();
    return now - atomic_exchange_explicit(&last, now, memory_order_relaxed) < SPINNING;
}

void parallel_for(ssize_t n, ssize_t grain, range_task task, void *context) {
    if (n <= 0) return;
    int threads = atomic_load_explicit(&wanted, memory_order_relaxed);
    if (grain < 1) grain = 1;
    if (threads > n / grain) threads = (int)(n / grain);
    if (threads <= 1 || inside || !is_worth_sharing(n, grain) ||
        atomic_flag_test_and_set_explicit(&pool.busy, memory_order_acquire)) {
        task(context, 0, n);
        return;
    }
    if (pool.workers < threads - 1) start_workers(threads - 1);
    ssize_t pieces = 4 * (ssize_t)threads; /* so that a slow thread leaves some to the others */
    pool.piece = (n + pieces - 1) / pieces > grain ? (n + pieces - 1) / pieces : grain;
    pool.threads = threads;
    atomic_store_explicit(&pool.joinable, threads - 1, memory_order_relaxed);
    pool.task = task;
    pool.context = context;
    for (int i = 0; i < threads; i++) {
        atomic_store_explicit(&pool.parts[i].next, n * i / threads, memory_order_relaxed);
        pool.parts[i].end = n * (i + 1) / threads;
    }
    atomic_store(&pool.state, OPEN);
    atomic_fetch_add(&pool.epoch, 1);
    if (atomic_load(&pool.sleepers)) {
        pthread_mutex_lock(&pool.mutex);
        pthread_cond_broadcast(&pool.wake);
        pthread_mutex_unlock(&pool.mutex);
    }
    inside = true;
    take_pieces(0);
    inside = false;
    atomic_fetch_and(&pool.state, ~OPEN);
    for (int i = 0; atomic_load_explicit(&pool.state, memory_order_acquire); i++)
        i < SPINS ? (void)PAUSE() : (void)sched_yield();
    atomic_flag_clear_explicit(&pool.busy, memory_order_release);
}

int thread_count(void) { return inside ? 1 : atomic_load_explicit(&wanted, memory_order_relaxed); }

void set_thread_count(int count) {
    atomic_store(&wanted, count < 1 ? 1 : count > MAX_WORKERS + 1 ? MAX_WORKERS + 1 : count);
}
