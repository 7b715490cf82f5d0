/*
 * gil.h - when the binding releases the GIL, how it detects a forked child, and clocks.
 *
 * The GIL is kept through short calls (crash-safety rule 34). penstock_gil_arm() gives the
 * core a hook that it calls once, before it sleeps or copies much; only then is the GIL released.
 * penstock_gil_take() ends the call: it disarms the hook, whose argument lies on the caller's
 * stack, and takes the GIL again if it was released. Nothing in the core needs the GIL, so there is
 * no order of locks to keep.
 *
 *     penstock_gil gil;
 *     penstock_gil_arm(&gil);
 *     status = mqe_...();
 *     penstock_gil_take(&gil);
 *
 * Between the two nothing may touch Python objects, because any core call may have released the
 * GIL.
 */
#ifndef PENSTOCK_GIL_H
#define PENSTOCK_GIL_H

#include <Python.h>

#include "penstock/engine.h"

#include <pthread.h>
#include <time.h>

typedef struct penstock_gil {
    PyThreadState *saved; /* not NULL: released */
} penstock_gil;

static inline void penstock_gil_release(penstock_gil *gil)
{
    gil->saved = PyEval_SaveThread();
}

static void penstock_gil_hook(void *gil)
{
    penstock_gil_release((penstock_gil *)gil);
}

/* While there is one Python thread, a short spin keeps the GIL: nobody else can want it. Called
 * with the GIL held. */
static int penstock_is_alone(void)
{
    PyThreadState *newest = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
    return newest == NULL || PyThreadState_Next(newest) == NULL;
}

static inline void penstock_gil_arm(penstock_gil *gil)
{
    gil->saved = NULL;
    mqe_block_hook_arm(penstock_gil_hook, gil);
}

/* 1 while this thread makes calls for an event loop, which must neither wait nor flush: they end
 * with MQE_INTERRUPTED instead. */
static __thread int penstock_at_once;

static inline void penstock_at_once_set(int yes)
{
    penstock_at_once = yes;
}

static inline int penstock_is_at_once(void)
{
    return penstock_at_once;
}

/* For calls that block or copy much in any case: released at once, without the hook. */
static inline void penstock_gil_begin_long(penstock_gil *gil)
{
    mqe_block_hook_arm(NULL, NULL);
    penstock_gil_release(gil);
}

/* The same for a call that may come back with MQE_INTERRUPTED, so that signal handlers run while it
 * waits for a process that is stopped; ended by penstock_gil_take_call(). */
static inline void penstock_gil_arm_call(penstock_gil *gil, int long_copy)
{
    if (long_copy) {
        penstock_gil_begin_long(gil);
    } else {
        penstock_gil_arm(gil);
    }
    if (penstock_at_once) {
        mqe_interrupt_at_once();
    } else {
        mqe_interrupt_allow(1);
    }
}

/* The same for a call that blocks in any case. */
static inline void penstock_gil_begin_call(penstock_gil *gil)
{
    penstock_gil_arm_call(gil, 1);
}

static inline void penstock_gil_take(penstock_gil *gil)
{
    mqe_block_hook_arm(NULL, NULL);
    if (gil->saved != NULL) {
        PyEval_RestoreThread(gil->saved);
    }
}

static inline void penstock_gil_take_call(penstock_gil *gil)
{
    mqe_interrupt_allow(0);
    penstock_gil_take(gil);
}

/* Number of forks between the first process and this one: handles keep the value and refuse every
 * call in a child (rule 32). The core checks it as well. */
static unsigned penstock_forks;

static void penstock_forked(void)
{
    penstock_forks++;
    mqe_block_hook_arm(NULL, NULL);
}

static inline void penstock_allow_spins(void)
{
    mqe_spin_rule_set(penstock_is_alone);
}

static inline int penstock_watch_forks(void)
{
    return pthread_atfork(NULL, NULL, penstock_forked);
}

/* Microseconds of the monotonic clock, which waits are measured with. */
static inline int64_t penstock_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Microseconds since 1970. */
static inline uint64_t penstock_wall_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

/* Sleeps half a millisecond, so that other threads can run; called without the GIL. */
static inline void penstock_pause(void)
{
    struct timespec moment = {.tv_sec = 0, .tv_nsec = 500000};
    nanosleep(&moment, NULL);
}

#endif
