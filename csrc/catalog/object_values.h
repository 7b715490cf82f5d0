/*
 * object_values.h - the values of an object slot: filling a slot, replacing values, the limits of
 * the queue manager.
 *
 * Terms
 *   fill      plain stores into a slot that no other process can see (DEFINING, or in a restart).
 *   replace   undoable stores into a visible object, in the caller's micro-transaction of the
 *             catalog lock. Puts and gets read the values without a lock: each is one aligned word.
 *
 * Locks: of each function below. None is taken here.
 */
#ifndef PENSTOCK_OBJECT_VALUES_H
#define PENSTOCK_OBJECT_VALUES_H

#include "catalog/definition.h"
#include "region/region.h"

/* An undoable store under the catalog lock, which the caller holds. */
static inline void mqx_catalog_store32(struct mqx_region *region, uint32_t *at, uint32_t value)
{
    MQX_ASSERT(mqx_lock_held(region, &region->header->catalog_lock));
    mqx_undo_store32(region->base, &region->header->catalog_lock, at, value);
}

/* May messages be put to and got from it, as far as the catalog is concerned? Without a lock. */
static inline bool mqx_object_usable(const struct mqx_object *object)
{
    const uint32_t state = mqx_load_acquire(&object->state);
    return state == MQX_OBJ_ACTIVE || (state == MQX_OBJ_LOGGED && object->pending_attrs != 0);
}

/* What object.name_sum says of a name that is not damaged. */
uint32_t mqx_object_name_sum(const struct mqx_object *object);
/* Fills a slot that is not visible yet: everything but state, generation, name_next and the free
 * list. MQRC_Q_MGR_NOT_AVAILABLE when the slot is still linked in a chain of names. */
int mqx_object_fill(const struct mqx_region *region, struct mqx_object *object,
                    const struct mqx_definition *def, uint32_t cell,
                    const struct mqx_values *values) MQX_MUST_USE;
/* Restart: the values of a newer definition of an object that stays. Plain stores. */
void mqx_object_fill_values(struct mqx_object *object, const struct mqx_values *values);
/* Replaces the values of a visible object. Catalog lock held; left open. */
void mqx_object_set_values(struct mqx_region *region, struct mqx_object *object,
                           const struct mqx_values *values);
/* MAXUMSGS, MAXMSGL and PERFMEV of the queue manager's object take effect; nothing for other
 * objects. Catalog lock held; left open. */
void mqx_object_set_limits(struct mqx_region *region, const struct mqx_object *object);

#endif
