/*
 * verify.c - maintenance and verification on request.
 */

#include "api/entry.h"
#include "base/error.h"
#include "os/block_hook.h"
#include "process/maintenance.h"
#include "queue/due_index.h"
#include "queue/id_index.h"
#include "queue/priority_index.h"
#include "recovery/checkpoint_round.h"

int mqe_checkpoint(mqe_manager *manager)
{
    const int status = mqx_enter(manager, false);
    return status == MQX_OK ? mqx_checkpoint_now(&manager->store) : status;
}

int mqe_compact(mqe_manager *manager)
{
    const int status = mqx_enter(manager, false);
    return status == MQX_OK ? mqx_compact_now(&manager->store) : status;
}

int mqe_maintain(mqe_manager *manager)
{
    MQX_ASSERT(manager != NULL);
    int status = mqx_enter(manager, false);
    if (status != MQX_OK) {
        return status;
    }
    mqx_about_to_block();
    status = mqx_maintenance_round(&manager->store);
    return status == MQX_BUSY ? MQX_OK : status;
}

/* A temporary queue lives as long as the handle that made it. Slots lock held. */
static int check_creator(const struct mqx_region *region, uint32_t slot)
{
    MQX_ASSERT(mqx_lock_held(region, &region->header->slots_lock));
    MQX_ASSERT(mqx_lock_held(region, &region->header->catalog_lock));
    const struct mqx_object *queue = mqx_object(region, slot);
    const struct mqx_handle *handle = mqx_handle(region, queue->creator);
    const bool orphaned = mqx_load_relaxed(&queue->state) == MQX_OBJ_ACTIVE &&
                          mqx_object_is_temporary(queue) &&
                          (handle == NULL || handle->state == 0 || handle->object != slot ||
                           handle->object_gen != queue->generation);
    return orphaned ? mqx_fail(MQRC_OBJECT_DAMAGED,
                               "the temporary queue \"%.48s\" has lost the handle that made it",
                               queue->name)
                    : MQX_OK;
}

static int check_life(struct mqx_region *region, uint32_t slot)
{
    MQX_ASSERT(slot != 0);
    struct mqx_lock *catalog = &region->header->catalog_lock, *slots = &region->header->slots_lock;
    int status = mqx_lock_take(region, catalog);
    if (status != MQX_OK) {
        return status;
    }
    status = mqx_lock_take(region, slots);
    if (status == MQX_OK) {
        status = check_creator(region, slot);
        mqx_lock_drop(region, slots);
    }
    mqx_lock_drop(region, catalog);
    return status;
}

static int check_queue(struct mqx_store *store, uint32_t slot)
{
    MQX_ASSERT(slot != 0);
    const struct mqx_object *queue = mqx_object(&store->region, slot);
    struct mqx_stripe_guard guard;
    const uint32_t state = queue == NULL ? (uint32_t)MQX_OBJ_FREE : mqx_load_acquire(&queue->state);
    if (state != MQX_OBJ_ACTIVE && state != MQX_OBJ_DELETING) {
        return MQX_OK;
    }
    int status = mqx_stripe_guard_take(&store->region, slot, &guard);
    if (status != MQX_OK) {
        return status;
    }
    status = mqx_priority_index_check(&store->region, queue);
    if (status == MQX_OK) {
        status = mqx_due_index_check(&store->region, queue);
    }
    for (int k = 0; k < MQX_INDEX_COUNT && status == MQX_OK; k++) {
        if (mqx_id_index_ready(&store->region, queue, k)) {
            status = mqx_id_index_check(&store->region, queue, k);
        }
    }
    mqx_stripe_guard_drop(&guard);
    return status;
}

int mqe_check(mqe_manager *manager)
{
    MQX_ASSERT(manager != NULL);
    int status = mqx_enter(manager, false);
    if (status != MQX_OK) {
        return status;
    }
    const uint64_t used = mqx_area_used(&manager->store.region, MQX_AREA_OBJECTS);
    for (uint32_t slot = 1; slot < used && status == MQX_OK; slot++) {
        if (mqx_object(&manager->store.region, slot) == NULL) {
            return mqx_region_damage(&manager->store.region, "the count of objects", used);
        }
        status = check_queue(&manager->store, slot);
        if (status == MQX_OK) {
            status = check_life(&manager->store.region, slot);
        }
    }
    return status;
}
