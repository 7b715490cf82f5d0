/*
 * group_commit.h - group commit: one write makes the records of all waiting callers durable (rules
 * 3-6, 13, 23).
 *
 * Purpose. A caller that needs an LSN durable and finds the flush lock free becomes leader: it
 * seals the open batch, fills the headers of all sealed batches, writes them in order (RWF_DSYNC,
 * one call for batches that adjoin), publishes `durable` by one release store, raises flush_word
 * and wakes the followers, which sleep on it.
 *
 * Terms
 *   leader     the thread that holds the flush lock and writes.
 *   follower   a thread that found the flush lock taken, or whose process cannot lead
 *              (leadership.h); sleeps on flush_word.
 *   flight     adjoining batches of one segment that one call writes.
 *   unsynced   segment index + 1 whose file has bytes written without data sync (rule 44); 0: all
 *              that was written is durable.
 *   mark page  a batch without records; its header carries the durable LSN.
 *
 * One flush, in order; a leader may die between any two steps
 *   step                                  lock            visible to others
 *   1. collect: seal, take a flight       flush, ring     the batch is in sealed[]
 *   2. headers into the ring              flush           nothing: headers are below batch_start
 *   3. the write                          flush           nothing
 *   4. durable = end of the flight        flush           followers' loads of `durable`
 *   5. written, queue, statistics         flush, ring     room in the ring
 *   6. flush_word, wake                   none            sleeping followers
 *
 * Invariants
 *   1. The flush lock is robust and held during the write, so a dead leader's successor starts only
 *      after the kernel ended the old write, and writes the same sealed batches again.
 *   2. `durable` is raised only after a successful data sync of everything below it.
 *   3. A page is rewritten only while no batch on it is durable (rule 6).
 *
 * Locks. Flush lock, and below it the ring lock for short holds. Callers hold none of rank FLUSH or
 * above. Every function may block; it says so to the environment (block_hook.h).
 *
 * Errors. The first failure of a write or flush stops the queue manager for all processes
 * (MQX_STOP_BROKEN, MQRC_CONNECTION_BROKEN): no retry. MQRC_Q_MGR_STOPPING after `end -i`. After a
 * failure of this process alone (leadership.h) another one leads; only when nobody does,
 * mqx_flush_to() stops the queue manager, and the others are refused with the failure's reason.
 */
#ifndef PENSTOCK_COMMIT_H
#define PENSTOCK_COMMIT_H

#include "journal/journal.h"
#include "os/interrupt.h"

/* Returns when everything below `lsn` is on the medium. MQE_INTERRUPTED only in a call that may be
 * interrupted (os/interrupt.h): who flushes what is decided ends that first. */
int mqx_flush_to(struct mqx_store *store, uint64_t lsn) MQX_MUST_USE;

/* From here on this call has decided something: its flushes are waited for, whatever signals
 * arrive. */
static inline void mqx_flush_is_decided(void)
{
    mqx_interrupt_allow(false);
}

/* mqx_flush_to() for the record of what this call has decided. */
static inline int mqx_flush_decided(struct mqx_store *store, uint64_t lsn)
{
    MQX_ASSERT(store->files != NULL);
    MQX_ASSERT(!mqx_lock_held(&store->region, &store->region.journal->flush_lock));
    mqx_flush_is_decided();
    return mqx_flush_to(store, lsn);
}

/* Writes out what is pending without waiting for the medium, to make room in the ring (rule 44);
 * the next flush then begins with a flush of the whole segment. */
int mqx_flush_room(struct mqx_store *store) MQX_MUST_USE;

/* Waits for what an append of `length` bytes that was refused with `need` lacks: room in the ring,
 * or in a segment. 0: try the append again. No lock held. Any other refusal comes back. */
int mqx_journal_wait_for_room(struct mqx_store *store, uint32_t length, int need) MQX_MUST_USE;

/* Writes a mark page when the newest batch is not yet covered by one. Called after 100 ms of
 * idleness, at checkpoints and at the orderly end. */
int mqx_flush_mark(struct mqx_store *store) MQX_MUST_USE;

#endif
