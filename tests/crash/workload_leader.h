/*
 * workload_leader.h - a second attached process in a workload, which dies between two calls of the
 * file table, most often as leader of a flush; the first one goes on.
 *
 * A turn: the second process attaches (a table of the same files, memory_io_process()), its calls
 * are made in a thread of their own, and that thread ends (pthread_exit) before the call of
 * the file table that the turn has drawn. The kernel marks the robust locks that it held; its
 * files are closed and its life word is marked, as at a SIGKILL. Then the first process cleans up
 * after it and looks at the queues.
 *
 * What must hold
 *   1. The step that was in progress has happened as a whole, or not at all; what the first process
 *      sees of it is as durable as if the dead one had acknowledged it: it is noted as such in the
 *      recording (memory_io_ack), so every power cut from then on is judged by it.
 *   2. One that has not happened shows in no later state of the disk either.
 *   3. The cleaning up, and all calls of the first process after it, work.
 *
 * A death comes only where a step is in progress, or in maintenance, so that the model knows the
 * two outcomes. Between the stores of one call of the core is another layer's subject (T2, T9).
 */
#ifndef PENSTOCK_TESTS_WORKLOAD_LEADER_H
#define PENSTOCK_TESTS_WORKLOAD_LEADER_H

#include "workload.h"

struct leader_counts {
    uint64_t turns;
    uint64_t deaths;     /* in a call; at the others' ends the process died idle */
    uint64_t as_leader;  /* with the flush lock held */
    uint64_t happened;   /* deaths whose step had its effect */
};

/* One turn. 0, or -1 with the workload in trouble. The workload has an attachment. */
int workload_leader_turn(struct workload *w, struct leader_counts *counts);

#endif
