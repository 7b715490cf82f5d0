/*
 * catalog_steps.c - see catalog_steps.h.
 */
#include "catalog/catalog_steps.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/error.h"
#include "catalog/attr_cells.h"
#include "catalog/name_table.h"
#include "catalog/object_values.h"
#include "journal/group_commit.h"
#include "os/block_hook.h"
#include "region/arena.h"
#include "region/damage.h"

enum {
    CHANGE_ATTEMPTS = 5000,   /* to find an object that no other context is changing, 1 ms apart */
    PAUSE_US = 1000,
};

int mqx_catalog_take_lock(struct mqx_region *region)
{
    const int status = mqx_lock_take(region, &region->header->catalog_lock);
    MQX_ASSERT(status != MQX_OK || region->header->catalog_lock.undo_count == 0);
    return status;
}

void mqx_catalog_drop_lock(struct mqx_region *region)
{
    MQX_ASSERT(mqx_lock_held(region, &region->header->catalog_lock));
    mqx_lock_drop(region, &region->header->catalog_lock);
}

void mqx_catalog_commit_and_drop(struct mqx_region *region)
{
    MQX_ASSERT(mqx_lock_held(region, &region->header->catalog_lock));
    mqx_undo_commit(&region->header->catalog_lock);
    mqx_lock_drop(region, &region->header->catalog_lock);
}

int mqx_catalog_fail_unknown(uint32_t slot)
{
    return mqx_fail(MQRC_UNKNOWN_OBJECT_NAME, "the object in slot %u has been deleted", slot);
}

int mqx_catalog_fail_deleted(uint32_t slot)
{
    return mqx_fail(MQRC_Q_DELETED, "the queue (slot %u) has been deleted", slot);
}

bool mqx_object_is_stored(const struct mqx_object *object)
{
    const uint32_t state = mqx_load_acquire(&object->state);
    return state == MQX_OBJ_ACTIVE || state == MQX_OBJ_LOGGED;
}

int mqx_catalog_flush(struct mqx_store *store)
{
    struct mqx_journal *journal = store->region.journal;
    MQX_ASSERT(!mqx_lock_held(&store->region, &store->region.header->catalog_lock));
    int status = mqx_lock_take(&store->region, &journal->ring_lock);
    if (status != MQX_OK) {
        return status;
    }
    const uint64_t end = journal->batch_records != 0 ? journal->tail : journal->batch_start;
    mqx_lock_drop(&store->region, &journal->ring_lock);
    return mqx_flush_to(store, end);
}

int mqx_catalog_set_active(struct mqx_region *region, uint32_t slot, uint32_t generation)
{
    struct mqx_object *object = mqx_object(region, slot);
    if (object == NULL) {
        return mqx_region_damage(region, "an object slot to become active", slot);
    }
    int status = mqx_catalog_take_lock(region);
    if (status == MQX_OK) {
        if (mqx_load_relaxed(&object->state) == MQX_OBJ_LOGGED &&
            object->generation == generation &&
            object->pending_attrs == 0) {
            mqx_catalog_store32(region, &object->state, MQX_OBJ_ACTIVE);
            mqx_object_set_limits(region, object);
        }
        mqx_catalog_commit_and_drop(region);
    }
    return status;
}

int mqx_catalog_activate(struct mqx_store *store, uint32_t slot)
{
    struct mqx_object *object = mqx_object(&store->region, slot);
    MQX_ASSERT(!mqx_lock_held(&store->region, &store->region.header->catalog_lock));
    if (object == NULL) {
        return mqx_catalog_fail_unknown(slot);
    }
    const uint32_t generation = mqx_load_acquire(&object->generation);
    if (mqx_load_acquire(&object->state) != MQX_OBJ_LOGGED ||
        mqx_load_relaxed(&object->pending_attrs) != 0) {
        return MQX_OK;
    }
    const int status = mqx_catalog_flush(store);
    return status == MQX_OK ? mqx_catalog_set_active(&store->region, slot, generation) : status;
}

/* ---- waiting for an object that can be changed ---- */

/* One look, in one hold. 0: idle, and the lock is held. MQX_BUSY: not now. 2052 2085: never. */
static int try_take_idle(struct mqx_region *region, const struct mqx_object *object, uint32_t slot,
                         uint32_t generation)
{
    const int status = mqx_lock_enter(region, &region->header->catalog_lock);
    if (status != MQX_OK) {
        return status;
    }
    const uint32_t state = mqx_load_relaxed(&object->state);
    const bool exists = object->generation == generation && state != MQX_OBJ_FREE;
    if (exists && state == MQX_OBJ_ACTIVE && object->changer == 0) {
        return MQX_OK;
    }
    mqx_catalog_commit_and_drop(region);
    if (!exists) {
        return mqx_catalog_fail_unknown(slot);
    }
    return state == MQX_OBJ_DELETING ? mqx_catalog_fail_deleted(slot) : MQX_BUSY;
}

int mqx_catalog_take_idle(struct mqx_store *store, uint32_t slot, uint32_t generation,
                          struct mqx_object **out)
{
    struct mqx_region *region = &store->region;
    struct mqx_object *object = mqx_object(region, slot);
    if (object == NULL) {
        return mqx_catalog_fail_unknown(slot);
    }
    for (int i = 0; i < CHANGE_ATTEMPTS; i++) {
        int status = try_take_idle(region, object, slot, generation);
        if (status == MQX_OK) {
            MQX_ASSERT(mqx_lock_held(region, &region->header->catalog_lock));
            *out = object;
            return MQX_OK;
        }
        if (status == MQX_BUSY) {
            status = mqx_catalog_activate(store, slot);
        }
        if (status != MQX_OK) {
            return status;
        }
        mqx_about_to_block();
        mqx_clock_sleep_us(PAUSE_US);
    }
    return mqx_fail(MQRC_OBJECT_IN_USE, "another change of the object in slot %u does not end",
                    slot);
}

int mqx_catalog_give_slot(struct mqx_region *region, uint32_t slot)
{
    struct mqx_object *object = mqx_object(region, slot);
    MQX_ASSERT(mqx_lock_held(region, &region->header->catalog_lock));
    if (object == NULL) {
        return mqx_region_damage(region, "an object slot to be freed", slot);
    }
    int status = mqx_names_unlink(region, slot);
    mqx_undo_commit(&region->header->catalog_lock);
    if (status == MQX_OK) {
        status = mqx_attrs_free(region, object->attrs, object->attrs_length, &object->attrs);
    }
    if (status == MQX_OK) {
        status = mqx_slot_give(region, MQX_AREA_OBJECTS, slot);
    }
    return status;
}
