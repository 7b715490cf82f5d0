/*
 * helper_thread.h - a thread that does a part of one call of the core beside the calling thread,
 * and ends before that call does.
 *
 * Purpose. Long calls (a restart) have work that another processor can do: touching memory that
 * will be needed. Such work may be left out at any time, so a system that refuses the thread
 * (RLIMIT_NPROC, a filter of system calls) costs time and nothing else.
 *
 * Invariants
 *   1. The thread blocks all signals: handlers run in the threads of the application.
 *   2. It is joined by the thread that started it, on every path.
 *
 * Forks. A child that another thread forks meanwhile has neither of the two threads, nor the call.
 * No locks, no errors.
 */
#ifndef PENSTOCK_HELPER_THREAD_H
#define PENSTOCK_HELPER_THREAD_H

#include "base/base.h"

#include <pthread.h>

struct mqx_helper_thread {
    pthread_t thread;
    bool runs;
};

/* Starts `run(arg)`; false when the system refuses. */
bool mqx_helper_thread_start(struct mqx_helper_thread *helper, void *(*run)(void *), void *arg);
/* Waits until it has returned; nothing when none was started. */
void mqx_helper_thread_join(struct mqx_helper_thread *helper);

#endif
