/*
 * cf_structure.h - CFSTRUCT objects, and the queues in them.
 *
 * Terms
 *   structure   an object of name space MQX_NAMES_STRUCTURE. It holds nothing itself: queues name
 *               it (attribute CFSTRUCT), and object.structure of each is its slot.
 *   failure     of a structure, simulated (mqe_fail_structure): the non-persistent messages of its
 *               queues are lost. Nothing else ends them; so they are journalled like persistent
 *               ones, and their descriptors mark them as not persistent.
 *
 * Invariants
 *   1. object.structure of a usable queue is a structure that exists, or 0: a structure that a
 *      queue names is not deleted.
 *   2. A queue gets another structure, and a structure a lower CFLEVEL, only while the queue (every
 *      queue in it) is empty and closed.
 *
 * Locks: the catalog lock is held by the caller; stores belong to its micro-transaction.
 * mqx_cf_structure_next may be called without it.
 */
#ifndef PENSTOCK_CF_STRUCTURE_H
#define PENSTOCK_CF_STRUCTURE_H

#include "catalog/definition.h"
#include "region/region.h"

/* The structure that the values name, 0 when they name none; 2085 when it does not exist. */
int mqx_cf_structure_find(struct mqx_region *region, const struct mqx_values *values,
                          uint32_t *out) MQX_MUST_USE;
/* Restart: links a queue that was loaded to its structure. 0, too, when no object has that name any
 * more. */
int mqx_cf_structure_relink(struct mqx_region *region, struct mqx_object *object) MQX_MUST_USE;

/* May this object get these values? 2085 when they name an unknown structure; 2042, 2055 by
 * invariant 2. */
int mqx_cf_structure_check_alter(struct mqx_region *region, uint32_t slot,
                                 const struct mqx_values *values) MQX_MUST_USE;
/* May this object be deleted? 2042 when it is a structure that queues name. */
int mqx_cf_structure_check_delete(const struct mqx_region *region, uint32_t slot) MQX_MUST_USE;

/* The next queue with slot > *slot in the structure, logically deleted ones left out; false at the
 * end. */
bool mqx_cf_structure_next(const struct mqx_region *region, uint32_t structure, uint32_t *slot);

#endif
