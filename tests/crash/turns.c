/*
 * turns.c - see turns.h. Compiled without the sanitizer, as store_hook.c is.
 */
#include "turns.h"

#include "store_hook.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

enum {
    SWITCHES_MAX = 5000,   /* of one schedule; the longest seen has a few hundred */
    TICK_US = 100000,      /* how often the supervisor looks whether its workers live */
    PATIENCE_TICKS = 300,
    SPINS = 2000,
    AFTER_DEATH_NS = 1000000,
    SLEPT_NS = 500000000,
};

long __real_syscall(long number, ...);
int __real_pthread_mutex_trylock(pthread_mutex_t *mutex);
int __real_pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until);
void __real_mqx_clock_sleep_us(uint64_t us);
long __wrap_syscall(long number, ...);
int __wrap_pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until);
void __wrap_mqx_clock_sleep_us(uint64_t us);

static struct turns *turns;
static uint32_t self = TURNS_SUPERVISOR;
/* This thread runs this worker's operation; the life thread, which wakes up at times, does not. */
static _Thread_local bool running;

/* ---- whose turn it is ---- */

static uint32_t now(const struct turns *t)
{
    return __atomic_load_n(&t->turn, __ATOMIC_ACQUIRE);
}

/* Spins a little: a turn is often a few microseconds long. False after `us`. */
static bool wait_for_turn(struct turns *t, uint32_t who, uint64_t us)
{
    struct timespec left = {.tv_sec = (time_t)(us / 1000000),
                            .tv_nsec = (long)(us % 1000000) * 1000};
    for (int i = 0; i < SPINS; i++) {
        if (now(t) == who) {
            return true;
        }
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    const uint32_t seen = now(t);
    if (seen != who) {
        (void)__real_syscall(SYS_futex, &t->turn, FUTEX_WAIT, seen, &left, NULL, 0);
    }
    return now(t) == who;
}

static void give_turn(struct turns *t, uint32_t to)
{
    __atomic_store_n(&t->turn, to, __ATOMIC_RELEASE);
    (void)__real_syscall(SYS_futex, &t->turn, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void turns_join(struct turns *shared, uint32_t number)
{
    turns = shared;
    self = number;
}

void turns_await(void)
{
    while (!wait_for_turn(turns, self, TICK_US)) {
    }
}

static void give_and_await(uint32_t to)
{
    give_turn(turns, to);
    turns_await();
}

/* False when the other worker has nothing more to run. */
static bool pass(void)
{
    const uint32_t other = 1 - self;
    if (turns->worker[other].over) {
        return false;
    }
    turns->switches += 1;
    give_and_await(turns->switches > SWITCHES_MAX ? (uint32_t)TURNS_SUPERVISOR : other);
    return true;
}

/* The pause of this worker's plan. */
static void pause_here(void)
{
    struct turns_worker *own = &turns->worker[self];
    own->paused = true;
    own->site = (uint64_t)(uintptr_t)store_hook_site();
    if (own->at_pause == TURNS_SWITCH) {
        (void)pass();
    } else if (own->at_pause == TURNS_DIE) {
        turns->kill = self + 1;
        give_and_await(TURNS_SUPERVISOR);
    } else if (!turns->worker[1 - self].over) {
        turns->kill = 1 - self + 1;
        give_and_await(TURNS_SUPERVISOR);
    }
}

/* The other worker has a lock that this one tried: between the attempt and what it does about it
 * the other one may release the lock. */
static void refused(void)
{
    struct turns_worker *own = &turns->worker[self];
    if (own->pause_when_refused && !own->paused) {
        pause_here();
    }
}

/* This worker cannot go on. The other one, which has what it waits for, dies now if its death is
 * planned: with a lock held is the moment that matters. */
static bool blocked(void)
{
    struct turns_worker *own = &turns->worker[self];
    if (own->at_pause == TURNS_KILL_OTHER && !own->paused && !turns->worker[1 - self].over) {
        pause_here();
        return true;
    }
    return pass();
}

void turns_begin(const void *region, uint64_t size)
{
    struct turns_worker *own = &turns->worker[self];
    running = true;
    store_hook_call(pause_here, refused);
    store_hook_arm(region, size, own->pause_at);
}

void turns_end(void)
{
    struct turns_worker *own = &turns->worker[self];
    const uint32_t other = 1 - self;
    own->points = store_hook_disarm();
    running = false;
    own->over = true;
    give_turn(turns, turns->worker[other].over ? (uint32_t)TURNS_SUPERVISOR : other);
}

/* ---- wrapped by the linker (--wrap): what sleeps ---- */

int __wrap_pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until)
{
    while (running) {
        const int err = __real_pthread_mutex_trylock(mutex);
        if (err != EBUSY) {
            return err;
        }
        if (!blocked()) {
            break;
        }
    }
    return __real_pthread_mutex_timedlock(mutex, until);
}

long __wrap_syscall(long number, ...)
{
    long argument[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++) {
        argument[i] = va_arg(list, long);
    }
    va_end(list);
    const uint32_t *word = (const void *)argument[0];
    while (running && number == SYS_futex && argument[1] == FUTEX_WAIT) {
        if (__atomic_load_n(word, __ATOMIC_ACQUIRE) != (uint32_t)argument[2]) {
            errno = EAGAIN;
            return -1;
        }
        if (!blocked()) {
            break;
        }
    }
    const struct timespec soon = {.tv_nsec = AFTER_DEATH_NS};
    if (running && number == SYS_futex && argument[1] == FUTEX_WAIT &&
        turns->worker[1 - self].dead) {
        argument[3] = (long)(uintptr_t)&soon; /* bounds are there for deaths: as if it had passed */
    }
    const long result = __real_syscall(number, argument[0], argument[1], argument[2], argument[3],
                                       argument[4], argument[5]);
    if (running && result == -1 && errno == ETIMEDOUT && !turns->worker[1 - self].dead) {
        const struct timespec *bound = (const void *)argument[3];
        turns->slept = turns->slept || bound->tv_sec >= 1 || bound->tv_nsec >= SLEPT_NS;
    }
    return result;
}

void __wrap_mqx_clock_sleep_us(uint64_t us)
{
    if (!running || !blocked()) {
        __real_mqx_clock_sleep_us(us);
    }
}

/* ---- the supervisor ---- */

/* A death that the plan asked for. */
static void kill_worker(struct turns *t, const pid_t *pids)
{
    const uint32_t victim = t->kill - 1;
    int status = 0;
    t->kill = 0;
    (void)kill(pids[victim], SIGKILL);
    (void)waitpid(pids[victim], &status, 0);
    t->worker[victim].dead = true;
    t->worker[victim].over = true;
}

static bool one_crashed(struct turns *t, const pid_t *pids)
{
    for (uint32_t i = 0; i < TURNS_WORKERS; i++) {
        int status = 0;
        if (!t->worker[i].dead && pids[i] > 0 && waitpid(pids[i], &status, WNOHANG) == pids[i]) {
            t->worker[i].dead = true;
            return true;
        }
    }
    return false;
}

enum turns_outcome turns_run(struct turns *t, const pid_t pids[TURNS_WORKERS])
{
    uint32_t next = t->worker[0].over ? 1 : 0;
    t->kill = 0;
    t->switches = 0;
    t->slept = false;
    for (;;) { /* each turn of the loop after the first follows a kill */
        give_turn(t, next);
        for (int tick = 0; !wait_for_turn(t, TURNS_SUPERVISOR, TICK_US); tick++) {
            if (one_crashed(t, pids)) {
                return TURNS_CRASHED;
            }
            if (tick == PATIENCE_TICKS) {
                return TURNS_HUNG;
            }
        }
        if (t->switches > SWITCHES_MAX) {
            return TURNS_LIVELOCK;
        }
        if (t->kill == 0) {
            return TURNS_OVER;
        }
        const uint32_t victim = t->kill - 1;
        kill_worker(t, pids);
        next = 1 - victim;
        if (t->worker[next].over) {
            return TURNS_OVER;
        }
    }
}
