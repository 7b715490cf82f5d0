/*
 * object_values.c - see object_values.h.
 */
#include "catalog/object_values.h"

#include "base/assert.h"
#include "base/checksum.h"
#include "base/clock.h"
#include "base/error.h"
#include "region/damage.h"

#include <string.h>

enum {
    SERVICE_EVENTS = MQX_EVENT_SERVICE_HIGH | MQX_EVENT_SERVICE_OK,
    SUMMED = 4 + 4 + MQX_NAME_SIZE, /* bytes that name_sum is of: name space, type, name */
};
MQX_STATIC_ASSERT(offsetof(struct mqx_object, name_space) + SUMMED ==
                      offsetof(struct mqx_object, name) + MQX_NAME_SIZE,
                  "name space, type and name lie together");

uint32_t mqx_object_name_sum(const struct mqx_object *object)
{
    MQX_ASSERT(object != NULL);
    return mqx_crc32c(0, &object->name_space, SUMMED);
}

void mqx_object_fill_values(struct mqx_object *object, const struct mqx_values *values)
{
    MQX_ASSERT(values->max_length <= MQX_MAX_BODY);
    MQX_ASSERT(values->def_priority <= MQX_MAX_PRIORITY);
    object->max_depth = values->max_depth;
    object->max_length = values->max_length;
    object->def_priority = values->def_priority;
    object->def_persistence = values->def_persistence;
    object->fifo = values->fifo;
    object->put_inhibited = values->put_inhibited;
    object->get_inhibited = values->get_inhibited;
    object->npm_class = values->npm_class;
    object->may_persist = values->may_persist;
    object->np_life = values->np_life;
    object->special = values->special;
    object->trigger_priority = values->trigger_priority;
    object->expiry_cap = values->expiry_cap;
    object->performance.enabled = values->events;
    object->performance.interval_ms = values->service_ms;
    object->performance.high_percent = values->depth_high;
    object->performance.low_percent = values->depth_low;
}

/* Processes keep what they know of queues that trigger until the version changes. */
static void note_triggers(const struct mqx_region *region, uint32_t type, uint32_t special)
{
    MQX_ASSERT(region->header != NULL);
    if (type == MQX_LOCAL_QUEUE && (special & MQX_SPECIAL_TRIGGER) != 0) {
        (void)mqx_fetch_add(&region->header->trigger_version, 1u);
    }
}

int mqx_object_fill(const struct mqx_region *region, struct mqx_object *object,
                    const struct mqx_definition *def, uint32_t cell,
                    const struct mqx_values *values)
{
    MQX_ASSERT(cell != 0);
    const uint64_t now = mqx_clock_monotonic_us();
    if (object->name_next != 0) {
        return mqx_region_damage(region, "the chain word of a free object slot", object->name_next);
    }
    object->name_space = def->name.name_space;
    object->type = def->name.type;
    memcpy(object->name, def->name.name, sizeof object->name);
    object->name_sum = mqx_object_name_sum(object);
    object->instance = def->name.instance;
    mqx_store_relaxed(&object->pending_attrs, 0u); /* mqx_catalog_activate() reads it unlocked */
    object->pending_length = 0;
    memset(&object->max_depth, 0,
           offsetof(struct mqx_object, changer) - offsetof(struct mqx_object, max_depth));
    mqx_store_relaxed(&object->changer, 0u); /* mqx_catalog_finish() reads it unlocked */
    object->performance = (struct mqx_performance){.reset_us = now, .service_us = now};
    object->open_output = 0;
    object->exclusive_input = 0;
    object->open_other = 0;
    object->structure = 0;
    object->failing = 0;
    mqx_object_fill_values(object, values);
    note_triggers(region, object->type, values->special);
    /* mqx_catalog_delete() reads it unlocked, before it is sure of the generation */
    mqx_store_relaxed(&object->definition_type, (uint8_t)mqx_definition_type(def, values));
    object->creator = 0;
    object->attrs_length = def->attrs_length;
    mqx_order();
    object->attrs = cell; /* last: a death before it loses the cells, not more */
    return MQX_OK;
}

void mqx_object_set_values(struct mqx_region *region, struct mqx_object *object,
                           const struct mqx_values *values)
{
    struct mqx_lock *lock = &region->header->catalog_lock;
    const struct {
        uint8_t *at;
        uint8_t value;
    } bytes[] = {
        {&object->def_priority, values->def_priority},
        {&object->def_persistence, values->def_persistence},
        {&object->fifo, values->fifo},
        {&object->put_inhibited, values->put_inhibited},
        {&object->get_inhibited, values->get_inhibited},
        {&object->npm_class, values->npm_class},
        {&object->may_persist, values->may_persist},
        {&object->np_life, values->np_life},
        {&object->special, values->special},
        {&object->trigger_priority, values->trigger_priority},
        {&object->performance.high_percent, values->depth_high},
        {&object->performance.low_percent, values->depth_low},
    };
    MQX_ASSERT(mqx_lock_held(region, lock));
    MQX_ASSERT(values->def_priority <= MQX_MAX_PRIORITY);
    mqx_catalog_store32(region, &object->max_depth, values->max_depth);
    mqx_catalog_store32(region, &object->max_length, values->max_length);
    mqx_catalog_store32(region, &object->expiry_cap, values->expiry_cap);
    if ((values->events & SERVICE_EVENTS) != 0 &&
        (mqx_load_relaxed(&object->performance.enabled) & SERVICE_EVENTS) == 0) {
        mqx_store_relaxed(&object->performance.service_us, mqx_clock_monotonic_us());
    }
    mqx_catalog_store32(region, &object->performance.enabled, values->events);
    mqx_catalog_store32(region, &object->performance.interval_ms, values->service_ms);
    note_triggers(region, object->type, object->special | values->special);
    for (size_t i = 0; i < MQX_ARRAY_COUNT(bytes); i++) {
        mqx_undo_store8(region->base, lock, bytes[i].at, bytes[i].value);
    }
}

void mqx_object_set_limits(struct mqx_region *region, const struct mqx_object *object)
{
    struct mqx_header *header = region->header;
    MQX_ASSERT(mqx_lock_held(region, &header->catalog_lock));
    if (object->name_space != MQX_NAMES_MANAGER) {
        return;
    }
    mqx_catalog_store32(region, &header->performance_events, object->performance.enabled);
    if (object->max_depth != 0) {
        mqx_catalog_store32(region, &header->max_uncommitted, object->max_depth);
    }
    if (object->max_length != 0) {
        mqx_catalog_store32(region, &header->max_message, object->max_length);
    }
}
