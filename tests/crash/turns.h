/*
 * turns.h - two worker processes of which one runs at a time, switched at chosen stores (T9).
 *
 * Terms
 *   worker      one of two processes; it runs one operation a schedule, with the store hook armed.
 *   pause       the point of a worker's operation at which the plan says what happens: the other
 *               worker's turn, its own death, or the other's death.
 *   supervisor  the parent, which starts schedules and kills.
 *
 * A worker that would sleep in the kernel (a contended lock, a futex, a pause of its own) gives its
 * turn to the other one and looks again when it has it back; only when the other one's operation is
 * over does it sleep. So a schedule depends on the plan alone, and a wake-up that is lost shows as
 * a sleep until its bound.
 *
 * Invariants
 *   1. At most one worker executes code of the core at a time.
 *   2. A worker is killed only while it waits for its turn, inside the core or between two stores.
 */
#ifndef PENSTOCK_TESTS_TURNS_H
#define PENSTOCK_TESTS_TURNS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum turns_at_pause { TURNS_SWITCH, TURNS_DIE, TURNS_KILL_OTHER };
enum { TURNS_WORKERS = 2, TURNS_SUPERVISOR = 2 };

struct turns_worker {
    uint64_t pause_at;             /* point of its operation, 0: none */
    enum turns_at_pause at_pause;
    bool pause_when_refused;       /* its pause is where it first finds a lock taken */
    bool paused;                   /* the pause was reached, or brought forward by a lock */
    bool over;                     /* it has nothing more to run */
    bool dead;
    uint64_t points;               /* of its operation */
    uint64_t site;                 /* of the pause: an address in the core */
};

struct turns { /* in memory that all share */
    uint32_t turn;                 /* futex word: a worker's number or TURNS_SUPERVISOR */
    uint32_t kill;                 /* 1 + the worker to be killed; 0 none */
    uint32_t switches;
    bool slept;                    /* a worker slept to the bound of a wait though nobody died */
    struct turns_worker worker[TURNS_WORKERS];
};

/* In a worker: says who it is. */
void turns_join(struct turns *turns, uint32_t self);
/* Waits until it is this worker's turn for the first time in a schedule. */
void turns_await(void);
/* Around the operation: arms the hook on the region; ends the turn for good. */
void turns_begin(const void *region, uint64_t size);
void turns_end(void);

enum turns_outcome { TURNS_OVER, TURNS_HUNG, TURNS_CRASHED, TURNS_LIVELOCK };
/* In the supervisor: runs the schedule that `turns` describes; worker 0 begins. Workers that the
 * plan kills are dead and waited for afterwards. */
enum turns_outcome turns_run(struct turns *turns, const pid_t pids[TURNS_WORKERS]);

#endif
