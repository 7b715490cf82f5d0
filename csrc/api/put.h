/*
 * put.h - the steps of a put, for single puts (put.c) and for many a call (put_batch.c).
 *
 * Purpose. A put is resolved (defaults, ranges, placement), then linked under the stripe lock,
 * then, when it is logged, written to the log ring. A caller fills in struct mqx_put_call first:
 * manager, store, to, put.object, .generation, .d, .ext, .body, .length.
 *
 * Terms
 *   logged       the message goes into the journal: it is persistent, or in a structure.
 *   autocommit   outside syncpoint: the message's own record commits its unit.
 *   gathered     records encoded one behind the other and appended in one hold of the ring lock
 *                (unit_records.h).
 *
 * Invariants
 *   1. A message is linked in one micro-transaction, after every check has passed.
 *   2. A put that fails leaves neither message, entry, blocks nor pending reference.
 *
 * Locks: mqx_put_link() works under the caller's hold; the others take their locks themselves and
 * need that none is held.
 *
 * Errors: 2003 2009 2013 2024 2030 2031 2041 2043 2047 2048 2050 2051 2052 2053 2071 2192 2373.
 */
#ifndef PENSTOCK_PUT_H
#define PENSTOCK_PUT_H

#include "api/entry.h"
#include "unit/unit_records.h"

struct mqx_put_call { /* one put */
    mqe_manager *manager;
    struct mqx_store *store;
    struct mqx_put put;
    const struct mqe_destination *to;
    uint32_t context;       /* of the unit or from the pool; 0 on the quick path */
    bool autocommit;        /* outside syncpoint: its record commits it */
    uint32_t flags;         /* MQE_PUT_* */
    struct mqe_arrival *arrival; /* with MQE_PUT_ATTENDED: what is told of it */
    int warning;            /* 2049 or 0 */
    uint64_t now_us;        /* when it is put; 0: when it is resolved */
};

/* Priority and persistence, placement, times, ids to be made; put.logged. 2041 2043 2047 2050 2013
 * 2052. */
int mqx_put_resolve(struct mqx_put_call *call, int32_t expiry, uint32_t flags) MQX_MUST_USE;

/* Decides for a put in call->context where its body goes, and whether it is in the unit. */
void mqx_put_choose_storage(struct mqx_put_call *call);

/* Links the message under the hold, with memory supplied as needed: one micro-transaction,
 * committed. Picks waiters when it is available at once. After a failure the lock has been
 * dropped. */
int mqx_put_link(struct mqx_put_call *call, struct mqx_stripe_guard *guard,
                 struct mqx_wakeups *wakes) MQX_MUST_USE;

/* Appends the records of a linked message; takes a checkpoint first when the journal is full. */
int mqx_put_append(struct mqx_put_call *call) MQX_MUST_USE;

/* The record of a linked message, encoded into the gathering of its unit; false: no room, or it
 * takes more than one record. */
bool mqx_put_gather(struct mqx_put_call *call, struct mqx_gather *gather);
/* Appends them. 2192: some are not in the ring, mqx_put_append() may find room for them. */
int mqx_put_append_gathered(struct mqx_gather *gather) MQX_MUST_USE;

/* Stores, links and logs one message of any length in call->context; a failure leaves nothing. */
int mqx_put_in_context(struct mqx_put_call *call) MQX_MUST_USE;

/* The same outside syncpoint, in a context of the pool. */
int mqx_put_autocommit(struct mqx_put_call *call) MQX_MUST_USE;

#endif
