/*
 * catalog_delete.h - deleting objects: the conditions, the logical deletion, the physical one. The
 * chain of states is in catalog.h.
 *
 * Terms
 *   logical deletion    the moment from which no call can use the object: state DELETING. It is
 *                       decided with the catalog, stripe and slots lock of the object held, and
 *                       takes effect there: for a temporary dynamic queue by the catalog lock's
 *                       micro-transaction, for all others by the ring lock's, which appends the
 *                       record.
 *   physical deletion   priority index, id indexes, name, cells and slot are given back and the
 *                       generation is raised. Every step may be done by any process, by several at
 *                       once, and repeated from its beginning: each examines state and generation
 *                       under the lock that it needs.
 *
 * Invariants
 *   1. An object is freed only when its deletion is durable (temporary ones: at once), no handle is
 *      open, no message and no waiter is left, and no alter is pending. What is true of a deleted
 *      object stays true, since no call can begin to use it.
 *
 * Locks: none may be held by the caller.
 */
#ifndef PENSTOCK_CATALOG_DELETE_H
#define PENSTOCK_CATALOG_DELETE_H

#include "region/store.h"

enum { MQX_CLOSE_KEEP = 0, MQX_CLOSE_DELETE = 1, MQX_CLOSE_PURGE = 2 }; /* MQCO_* */

/* Deletes. 2042 while handles are open; 2055 when messages are present and !purge or units hold
 * some; 2085, 2052 when it is gone. */
int mqx_catalog_delete(struct mqx_store *store, uint32_t slot, uint32_t generation,
                       bool purge) MQX_MUST_USE;
/* What closing the handle `handle` of the object does to it: Table 74 of the MQI reference. 0: it
 * is logically deleted, durably, or stays; 2045 and 2055: nothing has changed. The handle is still
 * open. */
int mqx_catalog_close(struct mqx_store *store, uint32_t slot, uint32_t handle,
                      uint32_t how) MQX_MUST_USE;
/* Goes on with the deletion of a logically deleted object as far as it can; nothing for others. */
int mqx_catalog_finish(struct mqx_store *store, uint32_t slot) MQX_MUST_USE;

#endif
