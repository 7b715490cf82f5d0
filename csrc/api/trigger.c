/*
 * trigger.c - triggers as engine.h shows them: which queues have them, what their conditions need,
 * and who evaluates them (queue/trigger.h).
 *
 * Locks: none. Errors: as mqx_enter(); 2052 for a queue that is gone, which functions without a
 * result pass over.
 */
#include "api/entry.h"
#include "base/clock.h"
#include "base/error.h"
#include "queue/trigger.h"

static bool is_usable(const struct mqx_object *queue)
{
    MQX_ASSERT(queue != NULL);
    const uint32_t state = mqx_load_acquire(&queue->state);
    return state == MQX_OBJ_ACTIVE || state == MQX_OBJ_LOGGED;
}

/* The queue, NULL when that life of the slot is over, when the slot is 0 (no queue has it), or when
 * calls are refused. */
static struct mqx_object *find_queue(mqe_manager *manager, uint32_t slot, uint32_t generation)
{
    MQX_ASSERT(manager != NULL);
    if (mqx_enter(manager, false) != MQX_OK) {
        return NULL;
    }
    struct mqx_object *queue = mqx_object(&manager->store.region, slot);
    const bool there = queue != NULL && mqx_load_acquire(&queue->generation) == generation &&
                       mqx_load_relaxed(&queue->type) == MQX_LOCAL_QUEUE &&
                       is_usable(queue);
    return there ? queue : NULL;
}

static bool triggers(const struct mqx_object *queue)
{
    MQX_ASSERT(queue != NULL);
    return (mqx_load_relaxed(&queue->special) & MQX_SPECIAL_TRIGGER) != 0;
}

uint32_t mqe_trigger_version(const mqe_manager *manager)
{
    MQX_ASSERT(manager != NULL);
    const struct mqx_header *header = manager->store.region.header;
    return header == NULL ? 0 : mqx_load_relaxed(&header->trigger_version);
}

int mqe_trigger_next(mqe_manager *manager, uint32_t *slot, uint32_t *generation)
{
    MQX_ASSERT(slot != NULL);
    MQX_ASSERT(generation != NULL);
    const int status = mqx_enter(manager, false);
    if (status != MQX_OK) {
        return status;
    }
    const struct mqx_region *region = &manager->store.region;
    const uint64_t used = mqx_area_used(region, MQX_AREA_OBJECTS);
    for (uint32_t at = *slot + 1; at < used; at++) {
        const struct mqx_object *queue = mqx_object(region, at);
        if (queue != NULL && mqx_load_relaxed(&queue->type) == MQX_LOCAL_QUEUE &&
            is_usable(queue) && triggers(queue)) {
            *slot = at;
            *generation = mqx_load_acquire(&queue->generation);
            return MQX_OK;
        }
    }
    return mqx_fail(MQRC_UNKNOWN_OBJECT_NAME, "no queue with TRIGGER behind slot %u", *slot);
}

bool mqe_trigger_due(mqe_manager *manager, uint32_t slot, uint32_t generation)
{
    struct mqx_object *queue = find_queue(manager, slot, generation);
    return queue != NULL && triggers(queue) && mqx_trigger_is_due(queue);
}

void mqe_trigger_settle(mqe_manager *manager, uint32_t slot, uint32_t generation)
{
    struct mqx_object *queue = find_queue(manager, slot, generation);
    if (queue != NULL) {
        mqx_trigger_settle(queue);
    }
}

int mqe_trigger_state(mqe_manager *manager, uint32_t slot, uint32_t generation,
                      struct mqe_trigger_state *out)
{
    MQX_ASSERT(out != NULL);
    const struct mqx_object *queue = find_queue(manager, slot, generation);
    if (queue == NULL) {
        return mqx_fail(MQRC_Q_DELETED, "the queue (slot %u) has been deleted", slot);
    }
    *out = (struct mqe_trigger_state){
        .count = mqx_trigger_count(queue),
        .open_input = mqx_load_relaxed(&queue->open_input),
        .last_us = mqx_load_relaxed(&queue->trigger_us),
    };
    return MQX_OK;
}

void mqe_trigger_note(mqe_manager *manager, uint32_t slot, uint32_t generation)
{
    struct mqx_object *queue = find_queue(manager, slot, generation);
    if (queue != NULL) {
        mqx_store_relaxed(&queue->trigger_us, mqx_clock_wall_us());
    }
}
