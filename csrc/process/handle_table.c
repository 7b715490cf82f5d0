/*
 * handle_table.c - see handle_table.h.
 */
#include "process/handle_table.h"

#include "base/clock.h"
#include "base/error.h"
#include "catalog/catalog.h"
#include "queue/browse_lock.h"
#include "queue/trigger.h"
#include "region/damage.h"

static void count_handle(struct mqx_region *region, struct mqx_object *object, uint32_t options,
                         int32_t by)
{
    MQX_ASSERT(by == 1 || by == -1);
    MQX_ASSERT(mqx_lock_held(region, &region->header->slots_lock));
    uint32_t *const counts[] = {
        (options & MQE_INPUT) != 0 ? &object->open_input : NULL,
        (options & MQE_OUTPUT) != 0 ? &object->open_output : NULL,
        (options & (MQE_INPUT | MQE_OUTPUT)) == 0 ? &object->open_other : NULL,
    };
    struct mqx_lock *lock = &region->header->slots_lock;
    for (size_t i = 0; i < MQX_ARRAY_COUNT(counts); i++) {
        if (counts[i] != NULL) {
            mqx_undo_store32(region->base, lock, counts[i], *counts[i] + (uint32_t)by);
        }
    }
}

/* Which definitions the name went through: an ALTER of one in use asks for FORCE. */
static void note_steps(struct mqx_region *region, struct mqx_handle *handle,
                       const struct mqe_destination *path)
{
    MQX_ASSERT(path->step_count <= MQE_STEPS_MAX);
    MQX_ASSERT(mqx_lock_held(region, &region->header->slots_lock));
    MQX_STATIC_ASSERT(MQX_ARRAY_COUNT(handle->step) + 1 == MQE_STEPS_MAX,
                      "room for every step but the last, which is the queue");
    MQX_ASSERT(path->step_count < MQE_STEPS_MAX ||
               path->step[MQE_STEPS_MAX - 1].slot == path->queue);
    for (uint32_t i = 0; i < MQX_ARRAY_COUNT(handle->step); i++) {
        const uint32_t slot = i < path->step_count ? path->step[i].slot : 0;
        if (handle->step[i] != slot) {
            mqx_undo_store32(region->base, &region->header->slots_lock, &handle->step[i], slot);
        }
    }
}

/* May the queue be opened so, now? Slots lock held. */
static int check_open(const struct mqx_region *region, const struct mqx_handle_request *request,
                      const struct mqx_object *object)
{
    MQX_ASSERT(mqx_lock_held(region, &region->header->slots_lock));
    const uint32_t state = mqx_load_relaxed(&object->state);
    const uint32_t input = request->options & MQE_INPUT;
    const bool current = object->generation == request->path->queue_generation;
    if (current && state == MQX_OBJ_DELETING && region->header->platform == MQX_PLATFORM_ZOS) {
        return mqx_fail(MQRC_Q_DELETED, "%.48s has been deleted, and is still in use",
                        object->name);
    }
    if (!current || (state != MQX_OBJ_ACTIVE && state != MQX_OBJ_LOGGED && !request->defining)) {
        return mqx_fail(MQRC_UNKNOWN_OBJECT_NAME, "the queue has been deleted");
    }
    if (object->type != MQX_LOCAL_QUEUE &&
        (request->options & (MQE_INPUT | MQE_BROWSE | MQE_OUTPUT)) != 0) {
        return mqx_fail(MQRC_OBJECT_TYPE_ERROR, "%.48s is no local queue: it holds no messages",
                        object->name);
    }
    if (input != 0 && object->exclusive_input != 0) {
        return mqx_fail(MQRC_OBJECT_IN_USE, "%.48s is open for exclusive input", object->name);
    }
    if (input == MQE_INPUT_EXCLUSIVE && object->open_input != 0) {
        return mqx_fail(MQRC_OBJECT_IN_USE, "%.48s is open for input", object->name);
    }
    return MQX_OK;
}

/* The stores of a registration. Slots lock held. */
static void fill_handle(struct mqx_region *region, const struct mqx_handle_request *request,
                        struct mqx_handle *handle, struct mqx_object *object)
{
    struct mqx_lock *lock = &region->header->slots_lock;
    MQX_ASSERT(handle->object == 0);
    mqx_undo_store32(region->base, lock, &handle->object_gen, request->path->queue_generation);
    mqx_undo_store32(region->base, lock, &handle->options, request->options);
    mqx_undo_store32(region->base, lock, &handle->browse_lock, 0);
    mqx_undo_store64(region->base, lock, &handle->opened_us, mqx_clock_coarse_us());
    mqx_undo_store32(region->base, lock, (uint32_t *)&handle->pid,
                     (uint32_t)mqx_process_slot(region, region->process)->pid);
    mqx_undo_store32(region->base, lock, &handle->object, request->path->queue);
    note_steps(region, handle, request->path);
    count_handle(region, object, request->options, 1);
    if ((request->options & MQE_INPUT) == MQE_INPUT_EXCLUSIVE) {
        mqx_undo_store32(region->base, lock, &object->exclusive_input, request->handle);
    }
}

int mqx_handle_register(struct mqx_region *region, const struct mqx_handle_request *request)
{
    MQX_ASSERT(request->path != NULL);
    MQX_ASSERT(request->handle != 0);
    struct mqx_lock *lock = &region->header->slots_lock;
    struct mqx_handle *handle = mqx_handle(region, request->handle);
    struct mqx_object *object = mqx_object(region, request->path->queue);
    if (handle == NULL || object == NULL) {
        return mqx_region_damage(region, "a handle slot", request->handle);
    }
    int status = mqx_lock_enter(region, lock);
    if (status != MQX_OK) {
        return status;
    }
    status = check_open(region, request, object);
    if (status == MQX_OK) {
        fill_handle(region, request, handle, object);
        mqx_undo_commit(lock);
    }
    mqx_lock_drop(region, lock);
    return status;
}

/* When its last handle for input is closed, a queue that triggers is looked at again: by the
 * caller, or, when the process is dead, by whoever waits on the initiation queue. */
static void note_last_input(struct mqx_object *object, uint32_t options)
{
    MQX_ASSERT(object != NULL);
    const uint32_t special = mqx_load_relaxed(&object->special);
    if ((options & MQE_INPUT) != 0 && object->open_input == 0 &&
        (special & MQX_SPECIAL_TRIGGER) != 0) {
        mqx_trigger_set_due(object);
    }
}

int mqx_handle_release(struct mqx_region *region, uint32_t slot)
{
    MQX_ASSERT(slot != 0);
    struct mqx_lock *lock = &region->header->slots_lock;
    struct mqx_handle *handle = mqx_handle(region, slot);
    if (handle == NULL) {
        return mqx_region_damage(region, "a handle slot", slot);
    }
    int status = mqx_lock_take(region, lock);
    if (status != MQX_OK) {
        return status;
    }
    struct mqx_object *object = mqx_object(region, handle->object);
    if (object != NULL && object->generation == handle->object_gen) {
        count_handle(region, object, handle->options, -1);
        note_last_input(object, handle->options);
        if (object->exclusive_input == slot) {
            mqx_undo_store32(region->base, lock, &object->exclusive_input, 0);
        }
    }
    mqx_undo_store32(region->base, lock, &handle->object, 0);
    mqx_undo_commit(lock);
    mqx_lock_drop(region, lock);
    return mqx_slot_give(region, MQX_AREA_HANDLES, slot);
}

int mqx_handle_close(struct mqx_store *store, uint32_t slot, uint32_t how)
{
    MQX_ASSERT(slot != 0);
    MQX_ASSERT(how <= MQX_CLOSE_PURGE);
    struct mqx_region *region = &store->region;
    const struct mqx_handle *handle = mqx_handle(region, slot);
    if (handle == NULL) {
        return mqx_region_damage(region, "a handle slot", slot);
    }
    const uint32_t object_slot = handle->object;
    const struct mqx_object *object = mqx_object(region, object_slot);
    const bool known =
        object != NULL && mqx_load_acquire(&object->generation) == handle->object_gen;
    int status = known ? mqx_catalog_close(store, object_slot, slot, how) : MQX_OK;
    if (status != MQX_OK) {
        return status;
    }
    (void)mqx_handle_unlock(region, slot);
    status = mqx_handle_release(region, slot);
    if (status == MQX_OK && known && mqx_load_acquire(&object->state) == MQX_OBJ_DELETING) {
        /* The queue is deleted and the handle closed; maintenance completes what fails here. */
        mqx_ignore(mqx_catalog_finish(store, object_slot));
        status = mqx_region_stopped(region) == MQX_RUNNING ? MQX_OK
                                                           : mqx_region_stop_reason(region);
    }
    return status;
}
