/*
 * prepared.h - prepared units: how a unit becomes nobody's, and how some of them are ended at once.
 *
 * A prepared unit is a context in state PREPARED with process 0 and its xid listed (xid_table.h). No
 * sweep and no detach looks at it; its list of messages does not change until it is decided.
 *
 * Preparing   slots: xid listed   ring: PREPARE record, state PREPARED, process 0   (flush)
 *             Between the two the unit is ACTIVE still: whoever ends it takes the xid off.
 *
 * Ending units x, y, ... needs one context of the process that does it, the leader:
 *   1. the leader says what it is about to do (leads);
 *   2. slots: each unit's `resolver` becomes the leader, 64 a hold, in ascending order of slots, so
 *      that two that want the same units never wait for each other in a ring;
 *   3. ring: the COMMIT_PREPARED or BACKOUT_PREPARED record; the leader is DECIDED from here on,
 *      and with it every unit whose resolver it is: the one store that decides about all of them;
 *   4. (flush) each unit is rolled forward or back, taken off its chain and freed, in any order;
 *   5. the leader is IDLE again.
 * Whoever finds the leader's process dead: before 3 the units have no resolver any more, after 3 goes
 * on with 4. A unit is therefore decided exactly when it has an resolver that is DECIDED.
 *
 * Locks: none may be held by the caller.
 */
#ifndef PENSTOCK_PREPARED_H
#define PENSTOCK_PREPARED_H

#include "unit/unit.h"
#include "unit/xid_table.h"

/* Is the unit in that context prepared, and not decided yet? May be asked without a lock. */
bool mqx_prepared_is_open(const struct mqx_region *region, const struct mqx_context *unit);

/* The open unit with that xid, durable; 2255 when there is none. *out_id: its unit id, which is
 * never used again. */
int mqx_prepared_find(struct mqx_store *store, const struct ps_xid *xid, uint32_t *out,
                      uint64_t *out_id) MQX_MUST_USE;
/* 2128 when some unit has the xid. */
int mqx_prepared_is_free(struct mqx_store *store, const struct ps_xid *xid) MQX_MUST_USE;

struct mqx_prepare { /* what is known of the unit */
    struct ps_prepared stored;
    uint32_t nonpersistent;   /* messages put and got */
};
/* ACTIVE -> PREPARED. On 2128 2071 2192 the unit is ACTIVE still. Not yet durable: up to
 * decided_lsn, *out_lsn. */
int mqx_prepared_decide(struct mqx_store *store, uint32_t context, const struct ps_xid *xid,
                        const struct mqx_prepare *facts, uint64_t *out_lsn) MQX_MUST_USE;

/* ---- ending ---- */

struct mqx_member {
    uint32_t context;
    uint32_t xid;       /* index in xids */
};
struct mqx_ending {
    struct mqx_store *store;
    uint32_t leader;
    bool commit;
    const struct ps_xid *xids;
    uint32_t count;
    uint32_t claimed;             /* so many of the members have the leader as their resolver */
    struct mqx_member *members;   /* count; ascending by context */
    uint64_t *unit_ids;           /* count; of the members */
    uint64_t discarded;           /* out */
};
/* Fills in members; 2255, 2046 (one twice). */
int mqx_prepared_look_up(struct mqx_ending *ending) MQX_MUST_USE;
/* Claims what is not claimed yet. MQX_BUSY: somebody else is about to end the next one, come again;
 * 2255: somebody has. */
int mqx_prepared_claim(struct mqx_ending *ending) MQX_MUST_USE;
/* Gives up what has been claimed. */
int mqx_prepared_release(struct mqx_store *store, uint32_t leader) MQX_MUST_USE;
/* All are claimed: decides, and does it. On a failure with the leader not DECIDED nothing
 * was done. */
int mqx_prepared_end(struct mqx_ending *ending) MQX_MUST_USE;
/* What a dead process had begun to end: `leader` is its context. */
int mqx_prepared_reap(struct mqx_store *store, uint32_t leader) MQX_MUST_USE;

/* ---- restart ---- */

struct mqx_restored { /* a unit as the journal says */
    struct ps_xid xid;
    uint64_t unit_id, first_lsn, prepare_end_lsn, prepared_us;
    uint32_t record_count, running_crc;
};
/* Makes the unit, without messages; then they are claimed one by one, in the order of the calls. */
int mqx_prepared_restore(struct mqx_store *store, const struct mqx_restored *restored,
                         uint32_t *out) MQX_MUST_USE;
int mqx_prepared_restore_message(struct mqx_store *store, uint32_t context, uint32_t slot,
                                 enum mqx_message_state state) MQX_MUST_USE;

#endif
