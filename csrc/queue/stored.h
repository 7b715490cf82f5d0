/*
 * stored.h - messages by where their records lie: listing them, and giving them another place.
 *
 * Purpose. Compaction (recovery/compaction.h) writes the record of a message anew and then tells
 * the index. Only the place changes: the message keeps its number, its position, its state.
 *
 * Terms
 *   stored     a message that is in the journal: available, got, locked, or put by a unit of work
 *              that is not complete.
 *   undecided  the last of these, when it was listed.
 *
 * Invariant: entry.lsn names a whole record of the message that is on the medium (or, until the
 * first flush, in the ring). It changes in one store, under the stripe lock, from one such record
 * to another of the same length, so a reader without the lock finds either.
 *
 * Locks: all functions take the stripe lock of the queue. Damage stops the queue manager.
 */
#ifndef PENSTOCK_STORED_H
#define PENSTOCK_STORED_H

#include "queue/priority_index.h"
#include "region/store.h"

struct mqx_stored {
    uint32_t slot;          /* of the entry */
    uint32_t record_length; /* of its PUT or MOVED record */
    uint32_t chunk_count;
    uint32_t undecided;     /* 1: its unit of work was not complete */
    uint64_t number;
    uint64_t lsn;
};

/* The next stored messages of the queue in delivery order, MQX_LOCKED_STEPS_MAX entries a lock
 * hold. Moves the cursor; `out` has room for as many. */
int mqx_stored_list(struct mqx_store *store, uint32_t object, struct mqx_cursor *cursor,
                    struct mqx_stored *out, uint32_t *out_count, bool *out_done) MQX_MUST_USE;

/* Entries that are still those messages of the queue, at the LSNs that were listed, get lsns[], in
 * one lock hold: at most MQX_LOCKED_STEPS_MAX. What lies there is durable. *out_moved: how many. */
int mqx_stored_move(struct mqx_store *store, uint32_t object, const struct mqx_stored *stored,
                    const uint64_t *lsns, uint32_t count, uint32_t *out_moved) MQX_MUST_USE;

/* The message, if it is still there and lies below that LSN, lies there from now on: a durable
 * record of it that a dead process has written and not noted (recovery/checkpoint.h). */
int mqx_stored_relocate(struct mqx_store *store, uint32_t object, uint32_t placement,
                        uint64_t number, uint64_t lsn) MQX_MUST_USE;

#endif
