/*
 * unit.h - units of work: records, commit, backout, and finishing what a dead process left (rules
 * 12, 19, 44-46).
 *
 * Purpose. A unit of work is a context of the region (struct mqx_context) with a list of messages
 * that were put or got in it. All of them take effect, or none, in memory and in the journal.
 *
 * Terms
 *   list         context.head ... tail, through message.unit_next, in the order of the calls.
 *   decided      the record that commits the unit is in the ring; it is not durable yet.
 *   roll         to go through the list and make each message available or remove it. Forward: each
 *                PUT message is shown, each GOT one removed. Back: each GOT message is shown with
 *                BackoutCount + 1 (+ 0 when autocommit), each PUT one removed. A PUT message that
 *                stays (MQE_PUT_STAYS) is shown by both.
 *   autocommit   a call outside syncpoint that needs more than one micro-transaction: a unit with
 *                one message, in a context with `autocommit` set.
 *   pending reference
 *                a message entry that a context has reserved or pinned and that is in no list of
 *                it: context.pending_kind, .pending_ref, .pending_object. The reaper releases it.
 *
 * States
 *   IDLE         --first put or get-->                    ACTIVE
 *   ACTIVE       --commit: COMMIT record in the ring-->   DECIDED
 *   ACTIVE       --backout: BACKOUT record in the ring--> BACKING_OUT
 *   DECIDED      --flushed, rolled forward-->             IDLE
 *   BACKING_OUT  --rolled back-->                         IDLE
 *   ACTIVE       --prepare: PREPARE record in the ring--> PREPARED, see prepared.h
 *
 * A unit without records (non-persistent messages only) goes the same way with decided_lsn 0.
 *
 * Invariants
 *   1. The state and the LSNs of a unit change in the micro-transaction of the ring that appends
 *      the record: a unit is DECIDED exactly when its COMMIT record is in the ring.
 *   2. Nothing of a unit is shown or removed before its decision is durable.
 *   3. A message leaves the list in the micro-transaction of its stripe that changes its state, so
 *      any process can continue rolling after a death.
 *   4. An IDLE context has an empty list, unit_id 0 and first_lsn 0.
 *   5. The list of a context that is not dead is changed by its own thread only.
 *
 * Locks: none may be held by the caller except where a stripe guard is passed. The stripe locks and
 * the ring lock are taken inside, one at a time; at most MQX_LOCKED_STEPS_MAX messages a hold.
 *
 * Errors: 2003 the queue manager backed the unit out; 2071 no memory for a record; 2192 no room in
 * the journal; 2009, 2162 the queue manager has stopped. MQRC_Q_MGR_NOT_AVAILABLE: a context or
 * message in the region cannot be true; the queue manager is stopped (region/damage.h), and the
 * next restart reads the unit from the journal.
 */
#ifndef PENSTOCK_UNIT_H
#define PENSTOCK_UNIT_H

#include "journal/group_commit.h"
#include "queue/queue.h"
#include "queue/wait_list.h"

/* IDLE -> ACTIVE; nothing when it is ACTIVE already. */
void mqx_unit_begin(struct mqx_store *store, uint32_t context);

/* Appends one record of the unit; fills in unit_id. `flags` as in struct mqx_append; `message`, a
 * slot that gets the record's LSN, may be 0. */
int mqx_unit_append(struct mqx_store *store, uint32_t context, const unsigned char *record,
                    uint32_t length, uint32_t flags, uint32_t message) MQX_MUST_USE;
/* The same for a short record; `common` NULL: it is not. */
int mqx_unit_append_short(struct mqx_store *store, uint32_t context, struct mqx_common *common,
                          const unsigned char *record, uint32_t length, uint32_t flags,
                          uint32_t message) MQX_MUST_USE;
enum {
    MQX_GET_DECIDES = 1,     /* it commits the unit, and is written in full */
    MQX_GET_ONE_OF_MANY = 2, /* others follow: short from the first one on */
};
/* Encodes the GET record of a message that the unit has got, into 8-aligned memory; its length, 0
 * when message or context are damaged. A short one refers to *common: the caller's, or, if that is
 * NULL, one that is put there. */
uint32_t mqx_unit_encode_get(struct mqx_store *store, uint32_t context, uint32_t slot, uint32_t how,
                             struct mqx_common **common, unsigned char *to);
/* Appends that record; with `decides` it commits the unit, too. */
int mqx_unit_log_get(struct mqx_store *store, uint32_t context, uint32_t slot,
                     bool decides) MQX_MUST_USE;
/* The unit's id, for records that are being encoded; made at the first call. */
uint64_t mqx_unit_id(struct mqx_store *store, uint32_t context);

/* Does the queue manager want the present unit of the context backed out? */
static inline bool mqx_unit_must_back_out(const struct mqx_context *unit)
{
    MQX_ASSERT(unit != NULL);
    const uint64_t marked = mqx_load_acquire(&unit->must_back_out);
    return MQX_UNLIKELY(marked != 0) && marked == mqx_load_relaxed(&unit->first_lsn);
}

/* ACTIVE -> durable -> effects visible -> IDLE; nothing when IDLE. 2003 when the queue manager
 * wanted it backed out (then it is). */
int mqx_unit_commit(struct mqx_store *store, uint32_t context) MQX_MUST_USE;
/* The first half of that: ACTIVE -> DECIDED; nothing when IDLE. mqx_unit_finish() is the other. */
int mqx_unit_decide(struct mqx_store *store, uint32_t context) MQX_MUST_USE;
/* ACTIVE or BACKING_OUT -> everything back -> IDLE; nothing when IDLE. */
int mqx_unit_backout(struct mqx_store *store, uint32_t context) MQX_MUST_USE;
/* The same, and what the unit had got is delayed by so many microseconds: its due time is in the
 * BACKOUT record. 2026 when that lies after the year 9999. */
int mqx_unit_backout_later(struct mqx_store *store, uint32_t context,
                           uint64_t delay_us) MQX_MUST_USE;
/* DECIDED -> durable -> effects visible -> IDLE. */
int mqx_unit_finish(struct mqx_store *store, uint32_t context) MQX_MUST_USE;

/* Rolls a PREPARED unit that has been decided, forward or back, until its list is empty. BACKOUT
 * records with the counts are written with the next flush. */
int mqx_unit_roll(struct mqx_store *store, uint32_t context, bool forward) MQX_MUST_USE;

/* Takes one message out of the unit, as if the call had not been made: a GOT one is shown, its
 * BackoutCount unchanged, a PUT one is removed. For calls that failed after the claim. */
int mqx_unit_undo(struct mqx_store *store, uint32_t context, uint32_t slot) MQX_MUST_USE;

/* Is a unit that began at `first` (0: no record yet) long, with the journal's tail as it was read
 * before: is its first record more than 80 % of the allowed journal ago? */
bool mqx_unit_is_long(const struct mqx_journal *journal, uint64_t tail, uint64_t first);

/* Marks long units: the next call of their owner backs them out (2003). Prepared ones are passed
 * over. *out_count: how many were marked by this call. A unit that ends meanwhile leaves the mark
 * to no other: it names the unit by its first LSN. */
void mqx_unit_mark_long(struct mqx_store *store, uint32_t *out_count);

/* Pins a message of the guard's queue `object`, so that it can be copied when the lock is dropped;
 * it has fewer than 255 pins, and the context no pending reference. Commits. */
void mqx_pending_pin(struct mqx_stripe_guard *guard, uint32_t context, uint32_t object,
                     uint32_t slot);
/* Releases the context's pending reference: a reserved entry with its chain, a pin. */
int mqx_pending_release(struct mqx_store *store, uint32_t context) MQX_MUST_USE;

#endif
