/*
 * queue_handle.c - see queue_handle.h.
 */
#include "api/queue_handle.h"

#include "api/context_pool.h"
#include "base/error.h"
#include "catalog/catalog.h"
#include "process/handle_table.h"
#include "os/block_hook.h"
#include "region/arena.h"

#include <stdlib.h>

/* The process-local part of a handle, and its slot. */
static int new_handle(mqe_manager *manager, uint32_t options, mqe_queue **out)
{
    MQX_ASSERT(*out == NULL);
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
    MQX_ASSERT(queue != NULL);
    (void)pthread_mutex_destroy(&queue->cursor_mutex);
    free(queue);
}

/* `defining`: the queue is being defined by this call. */
static int register_handle(const mqe_queue *queue, bool defining)
{
    MQX_ASSERT(queue->handle != 0);
    MQX_ASSERT(queue->object == queue->path.queue);
    const struct mqx_handle_request request = {
        .handle = queue->handle, .options = queue->options, .path = &queue->path,
        .defining = defining};
    return mqx_handle_register(&queue->manager->store.region, &request);
}

static void set_path(mqe_queue *queue, const struct mqe_destination *path)
{
    MQX_ASSERT(path != NULL);
    MQX_ASSERT(path->step_count <= MQE_STEPS_MAX);
    queue->object = path->queue;
    queue->generation = path->queue_generation;
    queue->path = *path;
}

/* A handle slot has room for all steps but a fifth one, which must be the queue. */
static bool fits_handle(const struct mqe_destination *path)
{
    MQX_ASSERT(path != NULL);
    return path->step_count < MQE_STEPS_MAX ||
           (path->step_count == MQE_STEPS_MAX &&
            path->step[MQE_STEPS_MAX - 1].slot == path->queue);
}

int mqe_open(mqe_manager *manager, const struct mqe_destination *path, uint32_t options,
             mqe_queue **out)
{
    MQX_ASSERT(path != NULL);
    MQX_ASSERT(out != NULL);
    struct mqx_region *region = &manager->store.region;
    mqe_queue *queue = NULL;
    int status = mqx_enter(manager, false);
    if (status == MQX_OK && !fits_handle(path)) {
        status = mqx_fail(MQRC_UNEXPECTED_ERROR,
                          "a path of %u steps that does not end at the queue", path->step_count);
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

/* Called by the definition when the queue is complete, but not yet visible: registers the
 * handle. */
static int register_new(void *arg, uint32_t slot, uint32_t generation)
{
    MQX_ASSERT(arg != NULL);
    MQX_ASSERT(slot != 0);
    mqe_queue *queue = arg;
    const struct mqe_destination path = mqe_direct(slot, generation);
    set_path(queue, &path);
    return register_handle(queue, true);
}

static int define_and_open(mqe_queue *queue, const struct mqx_definition *definition)
{
    MQX_ASSERT(queue->handle != 0);
    mqe_manager *manager = queue->manager;
    const struct mqx_define_hook birth = {
        .register_handle = register_new, .arg = queue, .handle = queue->handle};
    struct mqx_defined_object newborn;
    uint32_t context = 0;
    int status = mqx_pool_take(manager, true, &context);
    if (status == MQX_OK) {
        mqx_file_calls_begin(manager);
        status = mqx_catalog_define_open(&manager->store, context, definition, &birth, &newborn);
        mqx_file_calls_end(manager);
        mqx_pool_give(manager, context);
    }
    return status;
}

int mqe_open_new(mqe_manager *manager, const struct ps_object_name *name, const void *attrs,
                 uint32_t attrs_length, uint32_t options, mqe_queue **out,
                 struct mqe_found *found)
{
    MQX_ASSERT(name != NULL);
    MQX_ASSERT(out != NULL);
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
    status = define_and_open(queue, &definition);
    if (status != MQX_OK) {
        if (mqx_region_stopped(region) == MQX_RUNNING) {
            mqx_ignore(mqx_handle_release(region, queue->handle));
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
    MQX_ASSERT(queue->handle != 0);
    mqe_manager *manager = queue->manager;
    int status = mqx_enter(manager, false);
    if (status == MQX_OK && how > MQE_CLOSE_PURGE) {
        return mqx_fail(MQRC_OPTIONS_ERROR, "a queue cannot be closed with option %u", how);
    }
    if (status == MQX_OK) {
        mqx_file_calls_begin(manager);
        status = mqx_handle_close(&manager->store, queue->handle, how);
        mqx_file_calls_end(manager);
        if (status != MQX_OK && how != MQE_CLOSE_KEEP &&
            mqx_region_stopped(&manager->store.region) == MQX_RUNNING) {
            return status; /* nothing has changed: the handle is still open */
        }
    }
    free_handle(queue);
    return status;
}

void mqx_cursor_lock(mqe_queue *queue)
{
    MQX_ASSERT(queue != NULL);
    if (pthread_mutex_trylock(&queue->cursor_mutex) != 0) {
        mqx_about_to_block();
        (void)pthread_mutex_lock(&queue->cursor_mutex);
    }
}

void mqx_cursor_unlock(mqe_queue *queue)
{
    MQX_ASSERT(queue != NULL);
    (void)pthread_mutex_unlock(&queue->cursor_mutex);
}
