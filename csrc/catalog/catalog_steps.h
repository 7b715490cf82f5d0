/*
 * catalog_steps.h - steps that defining, altering, deleting, finding and repairing have in common.
 * The states and chains that they are part of are in catalog.h.
 *
 * Locks: none may be held by the caller unless stated otherwise. Appending to the journal and
 * flushing happen with no lock held.
 */
#ifndef PENSTOCK_CATALOG_STEPS_H
#define PENSTOCK_CATALOG_STEPS_H

#include "region/store.h"

/* Takes the catalog lock / drops it / commits its micro-transaction and drops it. */
int mqx_catalog_take_lock(struct mqx_region *region) MQX_MUST_USE;
void mqx_catalog_drop_lock(struct mqx_region *region);
void mqx_catalog_commit_and_drop(struct mqx_region *region);

/* 2085 and 2052, with a text that names the slot. */
int mqx_catalog_fail_unknown(uint32_t slot) MQX_MUST_USE;
int mqx_catalog_fail_deleted(uint32_t slot) MQX_MUST_USE;

/* Is the object in the files according to its state: ACTIVE or LOGGED? */
bool mqx_object_is_stored(const struct mqx_object *object);

/* Makes everything durable that is in the ring by now. */
int mqx_catalog_flush(struct mqx_store *store) MQX_MUST_USE;

/* An object that is LOGGED by a define becomes durable and ACTIVE, by any process that meets it.
 * Nothing for other objects. */
int mqx_catalog_activate(struct mqx_store *store, uint32_t slot) MQX_MUST_USE;
/* The same for one whose record is durable; nothing when that life of the slot is over. */
int mqx_catalog_set_active(struct mqx_region *region, uint32_t slot,
                           uint32_t generation) MQX_MUST_USE;

/* Takes the catalog lock with the object ACTIVE and no context changing it; waits up to 5 s for
 * that. 2052 2085 2042: the lock is not held. */
int mqx_catalog_take_idle(struct mqx_store *store, uint32_t slot, uint32_t generation,
                          struct mqx_object **out) MQX_MUST_USE;

/* Gives name, cells and slot of an object back. The catalog lock is held; several
 * micro-transactions, so after a death it is called again from the beginning. */
int mqx_catalog_give_slot(struct mqx_region *region, uint32_t slot) MQX_MUST_USE;

#endif
