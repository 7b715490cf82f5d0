/*
 * unit.h - units of work: records, commit, backout, and finishing what a dead owner left (rules 12,
 * 19, 44-46).
 *
 * A unit lives in a context. States:
 *
 *   IDLE         --first put or get-->                   ACTIVE
 *   ACTIVE       --commit: COMMIT record in the ring-->   DECIDED
 *   ACTIVE       --backout: BACKOUT record in the ring--> BACKING_OUT
 *   DECIDED      --flushed, rolled forward-->             IDLE
 *   BACKING_OUT  --rolled back-->                         IDLE
 *   ACTIVE       --prepare: PREPARE record in the ring--> PREPARED, see prepared.h
 *
 * A unit without records (non-persistent work only) goes the same way with decided_lsn 0. A call
 * outside syncpoint that needs more than one micro-transaction is a unit of its own in a context
 * with `single` set.
 *
 * Rolling forward: each PUT message is shown, each GOT one removed, in the order of the calls, at
 * most 64 a lock hold. Rolling back: each GOT message is shown with BackoutCount + 1 (+ 0 when
 * single), each PUT one removed. Each message leaves the context's list in the micro-transaction
 * that changes its state, so either can be continued by anybody after a death. Whoever continues a
 * DECIDED unit first makes decided_lsn durable.
 *
 * Locks: none may be held by the caller; the stripe locks and the ring lock are taken inside, one
 * at a time.
 */
#ifndef PENSTOCK_UOW_H
#define PENSTOCK_UOW_H

#include "journal/group_commit.h"
#include "queue/wait_list.h"
#include "queue/queue.h"

/* IDLE -> ACTIVE; nothing when it is ACTIVE already. */
void mqx_unit_begin(struct mqx_store *store, uint32_t context);

/* Appends one record of the unit; fills in unit_id. `flags` as in struct mqx_append; message may be
 * 0. */
int mqx_unit_append(struct mqx_store *store, uint32_t context, const unsigned char *record,
                    uint32_t length, uint32_t flags, uint32_t message) MQX_MUST_USE;
/* The GET record of a claimed persistent message, encoded into 8-aligned memory; its length. */
uint32_t mqx_unit_encode_get(struct mqx_store *store, uint32_t context, uint32_t slot, bool decides,
                             unsigned char *to);
/* The GET record of a claimed persistent message; with `decides` it commits the unit, too. */
int mqx_unit_log_get(struct mqx_store *store, uint32_t context, uint32_t slot,
                     bool decides) MQX_MUST_USE;
/* The unit's id for records that are being encoded. */
uint64_t mqx_unit_id(struct mqx_store *store, uint32_t context);

/* ACTIVE -> durable -> effects visible -> IDLE. 2003 when the queue manager wanted it backed out
 * (then it is). */
int mqx_unit_commit(struct mqx_store *store, uint32_t context) MQX_MUST_USE;
/* ACTIVE or BACKING_OUT -> everything back -> IDLE. */
int mqx_unit_backout(struct mqx_store *store, uint32_t context) MQX_MUST_USE;
/* DECIDED -> durable -> effects visible -> IDLE. */
int mqx_unit_finish(struct mqx_store *store, uint32_t context) MQX_MUST_USE;

/* The messages of a PREPARED unit that has been decided: forward or back, none is left. BACKOUT
 * records with the counts ride with the next flush. */
int mqx_unit_roll(struct mqx_store *store, uint32_t context, bool forward) MQX_MUST_USE;

/* Takes one message out of the unit again as if the call had not been made: a GOT one goes back
 * uncounted, a PUT one is removed. For calls that failed after the claim. */
int mqx_unit_undo(struct mqx_store *store, uint32_t context, uint32_t slot) MQX_MUST_USE;

/* Tells units whose first record is more than 80 % of the allowed journal ago that they are to be
 * backed out: the next call of their owner does it (2003). Prepared ones are passed over.
 * *out_count: how many were told now. */
void mqx_unit_mark_long(struct mqx_store *store, uint32_t *out_count);

/* Pins a message of the hold's queue `object` in the context's empty hand, so that it can be copied
 * when the lock is dropped; it has fewer than 255 pins. Commits. */
void mqx_pending_pin(struct mqx_stripe_guard *guard, uint32_t context, uint32_t object,
                     uint32_t slot);
/* Frees what the context has in hand: a reserved entry with its chain, a pin. */
int mqx_pending_release(struct mqx_store *store, uint32_t context) MQX_MUST_USE;

#endif
