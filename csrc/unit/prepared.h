/*
 * prepared.h - Prepared units: detaching a unit from its process, and resolving several in one
 * atomic step.
 *
 * A prepared unit is a context in state PREPARED with process 0 and its xid listed (xid_table.h).
 * No reaper and no detach touches it; its list of messages does not change until it is decided. It
 * survives restarts, which make it from its PREPARE record.
 *
 * Terms
 *   leader      the context of the process that resolves prepared units. Its own list is empty.
 *   resolver    of a prepared unit: the leader that has claimed it (context.resolver), 0 none.
 *   resolution  commit or backout of one or more units by one leader, as its process sees it.
 *   member      one of the units of a resolution.
 *   open        prepared, and not decided yet.
 *
 * Preparing   slots: xid listed   ring: PREPARE record, state PREPARED, process 0   (flush)
 *             Between the two the unit is still ACTIVE: whatever ends it takes the xid off.
 *
 * Resolving units x, y, ... needs one context of the process that does it, the leader:
 *   1. the leader announces commit or backout (context.leads);
 *   2. slots: each unit's `resolver` becomes the leader, 64 a hold, in ascending order of slots, so
 *      that two leaders that want the same units never wait for each other in a circle;
 *   3. ring: the COMMIT_PREPARED or BACKOUT_PREPARED record; the leader is DECIDED from here on,
 *      and with it every unit whose resolver it is: one store decides about all of them;
 *   4. (flush) each unit is rolled forward or back, taken off its chain and freed, in any order;
 *   5. the leader is IDLE again.
 * When the leader's process dies: before 3 the reaper removes the claims, after 3 it continues with
 * 4.
 *
 * Invariants
 *   1. A unit is decided exactly when it has a resolver that is DECIDED.
 *   2. A context with a listed xid is ACTIVE (being prepared), PREPARED, or on its way to FREE
 *      within one hold of the slots lock.
 *   3. A claim is removed only by its leader's process, or by the reaper when that is dead.
 *
 * Locks: none may be held by the caller. Slots, ring and stripe locks are taken inside, one at a
 * time. The state of a unit may be asked without a lock: mqx_prepared_is_open.
 *
 * Errors: 2255 no such unit; 2128 the xid is in use; 2046 one xid twice; 2071, 2192, 2009, 2162 as
 * in unit.h; MQX_BUSY another leader has claimed a unit; MQRC_Q_MGR_NOT_AVAILABLE the region is
 * damaged and the queue manager stopped.
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

struct mqx_prepare { /* facts about the unit, counted by the caller */
    struct ps_prepared stored;
    uint32_t nonpersistent;   /* messages put and got */
};
/* ACTIVE -> PREPARED. On 2128 2071 2192 the unit is still ACTIVE. Not yet durable: up to
 * decided_lsn, *out_lsn. */
int mqx_prepared_decide(struct mqx_store *store, uint32_t context, const struct ps_xid *xid,
                        const struct mqx_prepare *facts, uint64_t *out_lsn) MQX_MUST_USE;

/* ---- resolving ---- */

struct mqx_member {
    uint32_t context;
    uint32_t xid;       /* index in xids */
};
struct mqx_prepared_resolution {
    struct mqx_store *store;
    uint32_t leader;
    bool commit;
    const struct ps_xid *xids;
    uint32_t count;
    uint32_t claimed;             /* so many of the members have the leader as their resolver */
    struct mqx_member *members;   /* count; ascending by context */
    uint64_t *unit_ids;           /* count; of the members */
    uint64_t discarded;           /* out: non-persistent messages that a backout could not show */
};
/* Fills in members; 2255, 2046 (one xid twice). */
int mqx_prepared_look_up(struct mqx_prepared_resolution *resolution) MQX_MUST_USE;
/* Claims the members that are not claimed yet. MQX_BUSY: another leader has claimed the next one,
 * call again later; 2255: another leader has resolved it. */
int mqx_prepared_claim(struct mqx_prepared_resolution *resolution) MQX_MUST_USE;
/* Removes the claims of a leader that is not DECIDED. */
int mqx_prepared_release(struct mqx_store *store, uint32_t leader) MQX_MUST_USE;
/* All are claimed: decides, flushes, rolls each member and frees it. After a failure with the
 * leader not DECIDED nothing has changed. */
int mqx_prepared_resolve(struct mqx_prepared_resolution *resolution) MQX_MUST_USE;
/* The reaper: finishes or removes what the dead context `leader` had begun to resolve. */
int mqx_prepared_reap(struct mqx_store *store, uint32_t leader) MQX_MUST_USE;

/* ---- restart ---- */

struct mqx_restored { /* a unit as the journal has it */
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
