/*
 * define.c - objects as engine.h shows them: define, alter, delete, find, read. Control plane only:
 * nothing here is called on a put or a get.
 */

#include "api/context_pool.h"
#include "base/clock.h"
#include "catalog/catalog.h"
#include "os/block_hook.h"
#include "queue/wait_list.h"

enum { SECOND_US = 1000000, REPORT_AGAIN_S = 3600, STATE_SHIFT = 32 };

struct object_change {
    struct mqx_definition definition;
    uint32_t *slot, *generation;
    uint64_t definition_version;
    uint32_t flags;
};

static int do_define(struct mqx_store *store, uint32_t context, void *arg)
{
    MQX_ASSERT(context != 0);
    const struct object_change *c = arg;
    return mqx_catalog_define(store, context, &c->definition, c->slot, c->generation);
}

int mqe_define(mqe_manager *manager, const struct ps_object_name *name, const void *attrs,
               uint32_t attrs_length, uint32_t *slot, uint32_t *generation)
{
    MQX_ASSERT(name != NULL);
    MQX_ASSERT(attrs != NULL || attrs_length == 0);
    struct object_change c = {
        .definition = {*name, attrs, attrs_length}, .slot = slot, .generation = generation};
    return mqx_with_context(manager, do_define, &c);
}

enum { DEFINE_STEP = 256 };  /* definitions passed to the catalog in one go */

struct define_many {
    const struct mqe_definition *definitions;
    uint32_t count, done;
};

static int do_define_many(struct mqx_store *store, uint32_t context, void *arg)
{
    MQX_ASSERT(context != 0);
    MQX_ASSERT(((struct define_many *)arg)->done == 0);
    struct define_many *many = arg;
    struct mqx_definition definitions[DEFINE_STEP];
    uint32_t slots[DEFINE_STEP], generations[DEFINE_STEP];
    int status = MQX_OK;
    while (many->done < many->count && status == MQX_OK) {
        const struct mqe_definition *from = many->definitions + many->done;
        const uint32_t left = many->count - many->done;
        const uint32_t step = left < DEFINE_STEP ? left : (uint32_t)DEFINE_STEP;
        uint32_t done = 0;
        for (uint32_t i = 0; i < step; i++) {
            definitions[i] = (struct mqx_definition){*from[i].name, from[i].attrs, from[i].length};
        }
        status = mqx_catalog_define_many(store, context, definitions, step, slots, generations,
                                         &done);
        MQX_ASSERT(done <= step);
        MQX_ASSERT(done == step || status != MQX_OK);
        many->done += done;
    }
    return status;
}

int mqe_define_many(mqe_manager *manager, const struct mqe_definition *definitions, uint32_t count,
                    uint32_t *done)
{
    MQX_ASSERT(definitions != NULL || count == 0);
    MQX_ASSERT(done != NULL);
    struct define_many many = {definitions, count, 0};
    const int status = mqx_with_context(manager, do_define_many, &many);
    *done = many.done;
    return status;
}

static int do_alter(struct mqx_store *store, uint32_t context, void *arg)
{
    MQX_ASSERT(context != 0);
    const struct object_change *c = arg;
    return mqx_catalog_alter(store, context, *c->slot, *c->generation, &c->definition,
                             c->definition_version, c->flags);
}

int mqe_alter(mqe_manager *manager, uint32_t slot, uint32_t generation,
              const struct ps_object_name *name, const void *attrs, uint32_t attrs_length,
              uint64_t definition_version, uint32_t flags)
{
    MQX_ASSERT(name != NULL);
    MQX_ASSERT(attrs != NULL || attrs_length == 0);
    struct object_change c = {.definition = {*name, attrs, attrs_length}, .slot = &slot,
                              .generation = &generation,
                              .definition_version = definition_version, .flags = flags};
    const int status = mqx_with_context(manager, do_alter, &c);
    return status == MQX_OK ? mqe_wake(manager, slot) : status; /* waiters see 2016 or 2041 */
}

int mqe_wake(mqe_manager *manager, uint32_t slot)
{
    MQX_ASSERT(manager != NULL);
    const int status = mqx_enter(manager, false);
    const struct mqx_object *queue =
        status == MQX_OK ? mqx_object(&manager->store.region, slot) : NULL;
    return queue == NULL || mqx_load_acquire(&queue->waiters) == 0
               ? status
               : mqx_wait_list_cancel_all(&manager->store, slot);
}

bool mqe_report_due(mqe_manager *manager, uint32_t slot, uint32_t generation, uint32_t state)
{
    MQX_ASSERT(manager != NULL);
    if (mqx_enter(manager, false) != MQX_OK) {
        return false;
    }
    struct mqx_object *object = mqx_object(&manager->store.region, slot);
    if (object == NULL || mqx_load_acquire(&object->generation) != generation ||
        mqx_load_relaxed(&object->name_space) != MQX_NAMES_CLUSTER) {
        return false;
    }
    const uint32_t now = (uint32_t)(mqx_clock_monotonic_us() / SECOND_US) | 1; /* never 0 */
    uint64_t seen, told;
    do {
        seen = mqx_load_relaxed(&object->trigger_us);
        told = (uint64_t)state << STATE_SHIFT | now;
        if (seen != 0 && seen >> STATE_SHIFT == state && now - (uint32_t)seen < REPORT_AGAIN_S) {
            return false;
        }
    } while (!mqx_cas64(&object->trigger_us, seen, told));
    return true;
}

int mqe_delete(mqe_manager *manager, uint32_t slot, uint32_t generation, int purge)
{
    MQX_ASSERT(manager != NULL);
    int status = mqx_enter(manager, false);
    if (status == MQX_OK) {
        mqx_about_to_block();
        mqx_file_calls_begin(manager);
        status = mqx_catalog_delete(&manager->store, slot, generation, purge != 0);
        mqx_file_calls_end(manager);
    }
    return status;
}

int mqe_find(mqe_manager *manager, uint32_t name_space, const char name[48], uint64_t instance,
             struct mqe_found *out)
{
    MQX_ASSERT(name != NULL);
    MQX_ASSERT(out != NULL);
    int status = mqx_enter(manager, false);
    return status != MQX_OK
               ? status
               : mqx_catalog_find(&manager->store, name_space, name, instance, out);
}

int mqe_next_object(mqe_manager *manager, uint32_t *slot, uint32_t *generation)
{
    MQX_ASSERT(slot != NULL);
    MQX_ASSERT(generation != NULL);
    int status = mqx_enter(manager, false);
    return status != MQX_OK ? status : mqx_catalog_next(&manager->store, slot, generation);
}

int mqe_read_object(mqe_manager *manager, uint32_t slot, uint32_t generation,
                    struct ps_object_name *name, void *attrs, uint32_t capacity, uint32_t *length,
                    uint64_t *definition_version)
{
    MQX_ASSERT(length != NULL);
    int status = mqx_enter(manager, false);
    return status != MQX_OK ? status
                            : mqx_catalog_read(&manager->store, slot, generation, name, attrs,
                                               capacity, length, definition_version);
}

int mqe_read_deleted(mqe_manager *manager, uint32_t slot, uint32_t generation,
                     struct ps_object_name *name, void *attrs, uint32_t capacity, uint32_t *length)
{
    MQX_ASSERT(length != NULL);
    int status = mqx_enter(manager, false);
    return status != MQX_OK ? status
                            : mqx_catalog_read_deleted(&manager->store, slot, generation, name,
                                                       attrs, capacity, length);
}
