/*
 * storm.h - what the kill storms (T7 and the storm of checkpoints) share: workers, the account of
 * every message, the processes.
 *
 * Workers (forked, each attaches again) are producers (units of 1 to 4 messages onto A), movers (A
 * to B, one unit), consumers (from B); each message is put and got by a call of its own, or all of
 * a unit by one call, producers' batches outside a unit, too. Now and then each walks over a queue
 * by calls that look at many, lives a life of a dynamic queue (dynamic.h), of which nothing may be
 * left but permanent queues, and prepares a unit instead of committing it; each from time to time
 * ends some of the prepared units there are, whoever made them, as their names say. Ids are
 * (worker, incarnation, counter), never used again.
 *
 * Each worker has a pipe to the supervisor: a producer writes INTENT before and ACKED after its
 * commit, a consumer TAKING before and TOOK after; a record is one write below PIPE_BUF, whole or
 * absent, and outlives its writer. The supervisor kills through pidfds, only its own children,
 * never pid 1 or less, in a separate PID namespace where the system allows it.
 *
 * The account (storm_accounts.c) demands: every acked id is on exactly one queue or was taken
 * exactly once; a unit is whole; nothing was invented, nothing doubled; a producer's messages of
 * one priority are in order on A. It lies in shared memory, so that a child may do the counting.
 */
#ifndef PENSTOCK_TESTS_STORM_H
#define PENSTOCK_TESTS_STORM_H

#include "crash_fixture.h"

#include <stdio.h>
#include <sys/types.h>

enum {
    WORKERS_MAX = 32,
    UNIT_MAX = 4,
    IDS_A_KILL = 60,
    IDS_AT_FIRST = 4000,
};
enum { CONSUMERS_END = 1, MOVERS_END = 2, PRODUCERS_END = 3 };
enum kind { INTENT = 1, ACKED = 2, TAKING = 3, TOOK = 4, UNDONE = 5 };

struct note { /* one write to the pipe */
    uint32_t kind, count;
    uint64_t id[UNIT_MAX];
};

struct fate { /* what the supervisor knows of an id */
    uint64_t id, unit;
    uint8_t intended, acked, taking, took, undone, queued, persistent;
};

struct shared {
    uint32_t stop;                   /* raised to end consumers, then movers, then producers */
    uint64_t ids, ration;            /* put so far; the supervisor lets that many be put */
    uint64_t known;                  /* ids in the account */
    uint64_t checkpoints;            /* taken, compactions included */
    uint64_t doubted, found;         /* units in doubt and messages, as children have counted */
    uint64_t beat[WORKERS_MAX];      /* raised by the worker after each call */
    uint64_t lasting[WORKERS_MAX];   /* milliseconds: longest stand-still seen by the supervisor */
};

struct worker {
    pid_t pid;
    int pidfd, pipe;
    uint32_t incarnation;
    uint64_t last_beat, last_change_ms;
};

/* What a worker does until it is killed or `stop` says that it shall end; in a child. */
typedef void storm_work(uint32_t index, uint32_t incarnation);

struct storm {
    const char *layer;               /* for texts: "T7" */
    struct crash_fixture fixture;
    struct shared *shared;
    struct worker workers[WORKERS_MAX];
    storm_work *work;
    uint32_t worker_count;
    uint64_t seed;
    uint64_t units_acked, units_undone;
    int note_pipe;                   /* a worker's */
    uint32_t self;                   /* a worker's own number */
};
extern struct storm storm;

void storm_must(const char *what, int reason);
uint64_t storm_random(uint64_t *state);
uint64_t storm_now_ms(void);

/* ---- workers ---- */

/* Attaches; a unit of its own. */
mqe_manager *storm_attach(mqe_unit **out_unit);
/* A producer, a mover or a consumer, by its number; ends the process. */
_Noreturn void storm_worker(uint32_t index, uint32_t incarnation);
/* Units that are open and idle over many checkpoints; until the process is killed. */
_Noreturn void storm_holder(uint32_t index, uint32_t incarnation);

/* ---- accounts ---- */

/* Room for half as many ids; a power of two. */
void storm_accounts_make(uint32_t size);
void storm_accounts_forget(void);
void storm_apply(const struct note *note);
/* Browses a queue; marks what is there; on A checks the order of each producer's messages of one
 * priority. */
uint32_t storm_browse(mqe_manager *manager, int q, bool persistent_only, FILE *list);
/* What recovery found, for the second reader to compare: queue, id, length, in delivery order. The
 * file is PREFIX-found.txt, to be closed. */
FILE *storm_open_list(const char *prefix);
/* Nothing is on a queue, as far as is known. */
void storm_clear_queued(void);
/* Exits with a text, which names the witness, when something does not agree. */
void storm_check(const char *witness, bool persistent_only);
/* What a restart has said holds for all later ones: persistent messages that it found stay, those
 * that it did not find never come. */
void storm_settle(void);
/* Ends all prepared units; how many there were. */
uint32_t storm_end_prepared(mqe_manager *manager);

/* ---- processes ---- */

void storm_spawn(uint32_t index);
/* SIGKILL, through the pidfd. */
void storm_kill(uint32_t index);
/* After the process has ended: what it wrote is still in the pipe. */
void storm_bury(uint32_t index);
/* Reads the pipes; exits with a text when a worker stands still for a minute. */
void storm_watch(void);
/* A separate PID namespace, with a /proc that belongs to it; without the right to one the pidfds
 * must do. Then the shared memory. */
void storm_isolate(void);

#endif
