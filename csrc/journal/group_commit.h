/*
 * group_commit.h - group commit: one write makes everybody's records durable (rules 3-6, 13, 23).
 *
 * Whoever needs an LSN durable and finds the flush lock free becomes leader: it seals the open
 * batch, fills the headers of all sealed batches, writes them in order (RWF_DSYNC, one call for
 * batches that adjoin), publishes `durable` by one release store, raises flush_word and wakes the
 * followers, who slept on it. The flush lock is robust and held during the write, so a dead
 * leader's successor starts only after the kernel ended the old write, and writes the same sealed
 * batches again.
 *
 * A first failure of a write or flush stops the store for all processes (MQX_STOP_BROKEN): no
 * retry.
 */
#ifndef PENSTOCK_COMMIT_H
#define PENSTOCK_COMMIT_H

#include "journal/journal.h"

/* Returns when everything below `lsn` is on the medium. Tells the environment that it blocks
 * (block_hook.h). */
int mqx_flush_to(struct mqx_store *store, uint64_t lsn) MQX_MUST_USE;

/* Writes out what is pending without waiting for the medium, to make room in the ring (rule 44);
 * the next flush then begins with a flush of the whole segment. */
int mqx_flush_room(struct mqx_store *store) MQX_MUST_USE;

/* What an append of `length` bytes that was refused with `need` waits for before it is tried again:
 * room in the ring, or in a segment. No lock held. Any other refusal comes back. */
int mqx_journal_make_way(struct mqx_store *store, uint32_t length, int need) MQX_MUST_USE;

/* Writes a mark page (a batch without records that carries the durable LSN) when the newest batch
 * is not yet covered by one. Called after 100 ms of idleness, at checkpoints and at the orderly
 * end. */
int mqx_flush_mark(struct mqx_store *store) MQX_MUST_USE;

#endif
