/*
 * handle_table.c - entering the core, the pool of contexts, queue handles, units as engine.h shows them.
 */
#include "process/attach.h"

#include "base/clock.h"
#include "base/error.h"
#include "catalog/catalog.h"
#include "os/fork_guard.h"
#include "process/attachment.h"
#include "process/reaper.h"
#include "queue/browse_lock.h"
#include "unit/unit.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- entering ---- */

int mqx_enter(mqe_manager *manager, bool fail_if_quiescing)
{
    const struct mqx_region *region = &manager->store.region;
    if (MQX_UNLIKELY(mqx_forked(&manager->store))) {
        return mqx_fail(MQRC_ENVIRONMENT_ERROR,
                        "this process is a fork of the one that connected; connect anew");
    }
    if (MQX_UNLIKELY(mqx_region_stopped(region) != MQX_RUNNING)) {
        return mqx_region_stop_reason(region);
    }
    if (MQX_UNLIKELY(fail_if_quiescing && mqx_load_relaxed(&region->header->quiescing) != 0)) {
        return mqx_fail(MQRC_Q_MGR_QUIESCING, "the queue manager is quiescing");
    }
    return MQX_OK;
}

int mqe_usable(mqe_manager *manager, int fail_if_quiescing)
{
    return mqx_enter(manager, fail_if_quiescing != 0);
}

/* ---- pool: idle contexts for single calls and waiters; process-local, so it needs no repair
 * ---- */

int mqx_pool_take(mqe_manager *manager, bool single, uint32_t *out)
{
    uint32_t slot = 0;
    (void)pthread_mutex_lock(&manager->pool_mutex);
    if (manager->pool_count > 0) {
        slot = manager->pool[--manager->pool_count];
    }
    (void)pthread_mutex_unlock(&manager->pool_mutex);
    if (slot == 0) {
        int status = mqx_slot_take(&manager->store.region, MQX_AREA_CONTEXTS, NULL, &slot);
        if (status != MQX_OK) {
            return status;
        }
    }
    struct mqx_context *context = mqx_context(&manager->store.region, slot);
    mqx_check(context != NULL && context->state == MQX_CTX_IDLE);
    mqx_store_release(&context->autocommit, single ? 1u : 0u);
    *out = slot;
    return MQX_OK;
}

void mqx_pool_give(mqe_manager *manager, uint32_t slot)
{
    const struct mqx_context *context = mqx_context(&manager->store.region, slot);
    bool kept = false;
    mqx_check(context != NULL);
    if (mqx_load_acquire(&context->state) != MQX_CTX_IDLE) {
        return; /* the call ended in a stopped region; the next restart sees to it */
    }
    (void)pthread_mutex_lock(&manager->pool_mutex);
    if (manager->pool_count < MQX_ARRAY_COUNT(manager->pool)) {
        manager->pool[manager->pool_count++] = slot;
        kept = true;
    }
    (void)pthread_mutex_unlock(&manager->pool_mutex);
    if (!kept) {
        mqx_ignore(mqx_slot_give(&manager->store.region, MQX_AREA_CONTEXTS, slot));
    }
}

/* ---- queue handles ---- */

static void count_handle(struct mqx_region *region, struct mqx_object *object, uint32_t options,
                         int32_t by)
{
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
    MQX_STATIC_ASSERT(MQX_ARRAY_COUNT(handle->step) == MQE_STEPS_MAX, "room for every step");
    for (uint32_t i = 0; i < MQX_ARRAY_COUNT(handle->step); i++) {
        const uint32_t slot = i < path->step_count ? path->step[i].slot : 0;
        if (handle->step[i] != slot) {
            mqx_undo_store32(region->base, &region->header->slots_lock, &handle->step[i], slot);
        }
    }
}

/* Fills the slot and counts it: one micro-transaction of the slots lock. `newborn`: of a queue that
 * is being defined by this call. */
static int register_handle(mqe_queue *queue, bool newborn)
{
    struct mqx_region *region = &queue->manager->store.region;
    struct mqx_lock *lock = &region->header->slots_lock;
    struct mqx_handle *handle = mqx_handle(region, queue->handle);
    struct mqx_object *object = mqx_object(region, queue->object);
    int status = mqx_lock_take(region, lock);
    if (status != MQX_OK) {
        return status;
    }
    mqx_check(handle != NULL && object != NULL);
    const uint32_t state = mqx_load_relaxed(&object->state);
    if (object->generation == queue->generation && state == MQX_OBJ_DELETING &&
        region->header->platform == MQX_PLATFORM_ZOS) {
        status = mqx_fail(MQRC_Q_DELETED, "%.48s has been deleted, and is still in use",
                          object->name);
    } else if (object->generation != queue->generation ||
               (state != MQX_OBJ_ACTIVE && state != MQX_OBJ_LOGGED && !newborn)) {
        status = mqx_fail(MQRC_UNKNOWN_OBJECT_NAME, "the queue has been deleted");
    } else if (object->type != MQX_LOCAL_QUEUE &&
               (queue->options & (MQE_INPUT | MQE_BROWSE | MQE_OUTPUT)) != 0) {
        status = mqx_fail(MQRC_OBJECT_TYPE_ERROR, "%.48s is no local queue: it holds no messages",
                          object->name);
    } else if ((queue->options & MQE_INPUT) != 0 && object->exclusive_input != 0) {
        status = mqx_fail(MQRC_OBJECT_IN_USE, "%.48s is open for exclusive input", object->name);
    } else if ((queue->options & MQE_INPUT) == MQE_INPUT_EXCLUSIVE && object->open_input != 0) {
        status = mqx_fail(MQRC_OBJECT_IN_USE, "%.48s is open for input", object->name);
    } else {
        mqx_undo_store32(region->base, lock, &handle->object_gen, queue->generation);
        mqx_undo_store32(region->base, lock, &handle->options, queue->options);
        mqx_undo_store32(region->base, lock, &handle->browse_lock, 0);
        mqx_undo_store64(region->base, lock, &handle->opened_us, mqx_clock_coarse_us());
        mqx_undo_store32(region->base, lock, (uint32_t *)&handle->pid,
                         (uint32_t)mqx_process_slot(region, region->process)->pid);
        mqx_undo_store32(region->base, lock, &handle->object, queue->object);
        note_steps(region, handle, &queue->path);
        count_handle(region, object, queue->options, 1);
        if ((queue->options & MQE_INPUT) == MQE_INPUT_EXCLUSIVE) {
            mqx_undo_store32(region->base, lock, &object->exclusive_input, queue->handle);
        }
        mqx_undo_commit(lock);
    }
    mqx_lock_drop(region, lock);
    return status;
}

static int release(struct mqx_region *region, uint32_t slot)
{
    struct mqx_lock *lock = &region->header->slots_lock;
    struct mqx_handle *handle = mqx_handle(region, slot);
    mqx_check(handle != NULL);
    int status = mqx_lock_take(region, lock);
    if (status != MQX_OK) {
        return status;
    }
    struct mqx_object *object = mqx_object(region, handle->object);
    if (object != NULL && object->generation == handle->object_gen) {
        count_handle(region, object, handle->options, -1);
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
    struct mqx_region *region = &store->region;
    const struct mqx_handle *handle = mqx_handle(region, slot);
    mqx_check(handle != NULL);
    const uint32_t object_slot = handle->object;
    const struct mqx_object *object = mqx_object(region, object_slot);
    const bool known =
        object != NULL && mqx_load_acquire(&object->generation) == handle->object_gen;
    int status = known ? mqx_catalog_close(store, object_slot, slot, how) : MQX_OK;
    if (status != MQX_OK) {
        return status;
    }
    (void)mqx_handle_unlock(region, slot);
    status = release(region, slot);
    if (status == MQX_OK && known && mqx_load_acquire(&object->state) == MQX_OBJ_DELETING) {
        /* it is deleted, and the handle closed: what is left to do the maintenance does, too */
        mqx_ignore(mqx_catalog_finish(store, object_slot));
        status = mqx_region_stopped(region) == MQX_RUNNING ? MQX_OK
                                                           : mqx_region_stop_reason(region);
    }
    return status;
}

/* The process-local part of a handle, and its slot. */
static int new_handle(mqe_manager *manager, uint32_t options, mqe_queue **out)
{
    mqe_queue *queue = calloc(1, sizeof *queue);
    if (queue == NULL) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for a handle");
    }
    queue->manager = manager;
    queue->options = options;
    const int status =
        mqx_slot_take(&manager->store.region, MQX_AREA_HANDLES, NULL, &queue->handle);
    if (status != MQX_OK) {
        free(queue);
        return status;
    }
    (void)pthread_mutex_init(&queue->cursor_mutex, NULL);
    *out = queue;
    return MQX_OK;
}

static void free_handle(mqe_queue *queue)
{
    (void)pthread_mutex_destroy(&queue->cursor_mutex);
    free(queue);
}

static void set_path(mqe_queue *queue, const struct mqe_destination *path)
{
    queue->object = path->queue;
    queue->generation = path->queue_generation;
    queue->path = *path;
}

int mqe_open(mqe_manager *manager, const struct mqe_destination *path, uint32_t options,
             mqe_queue **out)
{
    struct mqx_region *region = &manager->store.region;
    mqe_queue *queue = NULL;
    int status = mqx_enter(manager, false);
    if (status == MQX_OK && path->step_count > MQE_STEPS_MAX) {
        status = mqx_fail(MQRC_UNEXPECTED_ERROR, "a path of %u steps", path->step_count);
    }
    if (status == MQX_OK && mqx_object(region, path->queue) == NULL) {
        status = mqx_fail(MQRC_UNKNOWN_OBJECT_NAME, "there is no object in slot %u", path->queue);
    }
    if (status == MQX_OK) {
        status = new_handle(manager, options, &queue);
    }
    if (status != MQX_OK) {
        return status;
    }
    set_path(queue, path);
    status = register_handle(queue, false);
    if (status != MQX_OK) {
        mqx_ignore(mqx_slot_give(region, MQX_AREA_HANDLES, queue->handle));
        free_handle(queue);
        return status;
    }
    *out = queue;
    return MQX_OK;
}

/* The queue is filled, but nobody can see it. */
static int attend(void *arg, uint32_t slot, uint32_t generation)
{
    mqe_queue *queue = arg;
    const struct mqe_destination path = mqe_direct(slot, generation);
    set_path(queue, &path);
    return register_handle(queue, true);
}

static int bear(mqe_queue *queue, const struct mqx_definition *definition)
{
    mqe_manager *manager = queue->manager;
    const struct mqx_define_hook birth = {.attend = attend, .arg = queue, .handle = queue->handle};
    struct mqx_defined_object newborn;
    uint32_t context = 0;
    int status = mqx_pool_take(manager, true, &context);
    if (status == MQX_OK) {
        mqx_inside(manager, 1);
        status = mqx_catalog_define_open(&manager->store, context, definition, &birth, &newborn);
        mqx_inside(manager, -1);
        mqx_pool_give(manager, context);
    }
    return status;
}

int mqe_open_new(mqe_manager *manager, const struct ps_object_name *name, const void *attrs,
                 uint32_t attrs_length, uint32_t options, mqe_queue **out,
                 struct mqe_found *found)
{
    struct mqx_region *region = &manager->store.region;
    const struct mqx_definition definition = {*name, attrs, attrs_length};
    mqe_queue *queue = NULL;
    int status = mqx_enter(manager, false);
    if (status == MQX_OK) {
        status = new_handle(manager, options, &queue);
    }
    if (status != MQX_OK) {
        return status;
    }
    status = bear(queue, &definition);
    if (status != MQX_OK) {
        if (mqx_region_stopped(region) == MQX_RUNNING) {
            mqx_ignore(release(region, queue->handle));
        }
        free_handle(queue);
        return status;
    }
    *found = (struct mqe_found){queue->object, queue->generation, name->type, 0};
    *out = queue;
    return MQX_OK;
}

int mqe_close(mqe_queue *queue, uint32_t how)
{
    mqe_manager *manager = queue->manager;
    int status = mqx_enter(manager, false);
    if (status == MQX_OK && how > MQE_CLOSE_PURGE) {
        return mqx_fail(MQRC_OPTIONS_ERROR, "a queue cannot be closed with option %u", how);
    }
    if (status == MQX_OK) {
        mqx_inside(manager, 1);
        status = mqx_handle_close(&manager->store, queue->handle, how);
        mqx_inside(manager, -1);
        if (status != MQX_OK && how != MQE_CLOSE_KEEP &&
            mqx_region_stopped(&manager->store.region) == MQX_RUNNING) {
            return status; /* nothing has changed: the handle is still open */
        }
    }
    free_handle(queue);
    return status;
}

/* ---- units ---- */

int mqe_unit_new(mqe_manager *manager, mqe_unit **out)
{
    mqe_unit *unit = NULL;
    uint32_t context = 0;
    int status = mqx_enter(manager, false);
    if (status == MQX_OK) {
        status = mqx_pool_take(manager, false, &context);
    }
    if (status != MQX_OK) {
        return status;
    }
    unit = calloc(1, sizeof *unit);
    if (unit == NULL) {
        mqx_pool_give(manager, context);
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for a unit of work");
    }
    *unit = (mqe_unit){.manager = manager, .context = context};
    *out = unit;
    return MQX_OK;
}

void mqe_unit_free(mqe_unit *unit)
{
    if (mqx_enter(unit->manager, false) == MQX_OK) {
        mqx_ignore(mqx_unit_backout(&unit->manager->store, unit->context));
        mqx_pool_give(unit->manager, unit->context);
    }
    free(unit);
}

static int end_unit(mqe_unit *unit, int (*end)(struct mqx_store *store, uint32_t context))
{
    int status = mqx_enter(unit->manager, false);
    if (status == MQX_OK) {
        mqx_inside(unit->manager, 1);
        status = end(&unit->manager->store, unit->context);
        mqx_inside(unit->manager, -1);
    }
    return status;
}

int mqe_commit(mqe_unit *unit)
{
    return end_unit(unit, mqx_unit_commit);
}

int mqe_backout(mqe_unit *unit)
{
    return end_unit(unit, mqx_unit_backout);
}

uint32_t mqe_unit_count(const mqe_unit *unit)
{
    if (mqx_forked(&unit->manager->store)) {
        return 0; /* the region is not mapped in a child */
    }
    const struct mqx_context *context = mqx_context(&unit->manager->store.region, unit->context);
    return context == NULL ? 0 : context->count;
}
