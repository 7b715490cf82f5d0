/*
 * checkpoint.h - copies of catalog and index that bound the replay and free the journal (rule 11).
 *
 * Purpose. A restart reads the newest checkpoint and the journal from its begin LSN on. Two are
 * kept: when the newest is damaged, the restart reads the older one and more of the journal (rule
 * 61). Segments that neither needs are retired, whatever lies beside them: a checkpoint lists those
 * before its begin segment that a message keeps.
 *
 * Terms
 *   begin LSN  where the replay begins: the tail at the start, or at or below the record that
 *              decides a unit whose effects are not complete.
 *   carried    a unit that is not decided at the begin LSN: the checkpoint has what its records
 *              below have done so far (units_in_flight.h), so that none holds the begin LSN back.
 *   bounded    the fallback when the units are not known, because the older files cannot be read:
 *              the begin LSN is min(first LSN of every unit in flight, tail at the start); of the
 *              first checkpoint that a unit bounds just below its record, so that a second one can
 *              replace what the older one keeps.
 *   fuzzy      taken while others work: objects and messages are copied, at most 64 in a lock hold.
 *              Replay from the begin LSN is idempotent by message number, so changes made while it
 *              was taken come out right.
 *   clean      the orderly end: no other process is attached, no unit but prepared ones is in
 *              flight; the journal's tail is flushed and marked.
 *   image      messages of NPMCLASS(HIGH) queues that a clean checkpoint carries.
 *
 * What a fuzzy checkpoint covers
 *
 *   LSN      ...  decision that is      tail when      tail when
 *                 not complete yet      it began       everything was copied
 *                       |                 |                |
 *                   begin LSN    (or)  begin LSN       end LSN (durable)
 *   effects below the begin LSN           in the copies, all of them
 *   effects from there to the end LSN     in the copies or not: the replay repeats them
 *   effects above                         in the tail alone
 *   records of units that are not decided at the begin LSN, below it   carried
 *
 * Steps, and what a crash after each of them leaves
 *   1 begin      the begin LSN is fixed under the ring lock    the older checkpoint
 *   2 objects    copied and written to <lsn>.tmp               the same, and a *.tmp that the
 *                                                              next restart removes
 *   3 messages   queue by queue, 64 in a lock hold             the same
 *   4 units      the journal is flushed; the older checkpoint  the same
 *                and the journal are replayed, and what is
 *                not decided at the begin LSN is written
 *   5 end        segments, totals, END block; the file is      the same
 *                flushed, read back, verified, and rehearsed
 *   6 rename     <lsn>.psc, then the directory is flushed      either is the newest: both are
 *                                                              whole, the journal of both is there
 *   7 remove     all but this one and the older one that is    the new one and the older one
 *                kept are unlinked, damaged ones as well
 *   8 retire     segments before the begin one without live    the same, and segments that the
 *                messages, which the older one needs no more,  next checkpoint retires
 *                become spares or are unlinked
 * What a process that died left as *.tmp is removed before step 1 by whoever takes the next one.
 *
 * Invariants
 *   1. A checkpoint counts only under its own name: it is written to *.tmp, flushed (every MiB with
 *      a pause when fuzzy), read back and verified, renamed, and the directory flushed.
 *   2. Only then the one before the older one is removed and segments are retired. From the second
 *      checkpoint on, two whole ones and everything that each needs are on the medium at every
 *      moment. The older one is one that was read and found whole.
 *   3. Objects ascend by slot; messages are in delivery order, queues by slot. Restarts rely on it.
 *   4. Before the rename the restart from it is rehearsed against the one from the older checkpoint
 *      (rehearsal.h): what stray pointers did to the region does not replace what the journal says.
 *
 * Locks. The caller of mqx_checkpoint() holds the maintenance lock; catalog, queue, roll and ring
 * locks are taken inside for short holds.
 *
 * Errors. The queue manager goes on after a failure, with the older checkpoint: reasons of the file
 * table, MQRC_STORAGE_NOT_AVAILABLE without memory, MQRC_OBJECT_DAMAGED when what was written
 * cannot be read back, MQRC_UNEXPECTED_ERROR for an orderly end with a unit in flight. It stops
 * only for a failed flush of the journal, for values in the region that cannot be true, and when
 * the rehearsal finds a difference.
 */
#ifndef PENSTOCK_CHECKPOINT_H
#define PENSTOCK_CHECKPOINT_H

#include "journal/group_commit.h"

enum { /* modes */
    MQX_CHECKPOINT_FUZZY = 0,
    MQX_CHECKPOINT_CLEAN = 1,          /* orderly end with image */
    MQX_CHECKPOINT_CLEAN_NO_IMAGE = 2, /* orderly end that discards non-persistent messages (-p) */
};
int mqx_checkpoint(struct mqx_store *store, int mode) MQX_MUST_USE;

#endif
