/*
 * cf_structure.c - see cf_structure.h.
 */
#include "catalog/cf_structure.h"

#include "base/assert.h"
#include "base/error.h"
#include "catalog/attr_cells.h"
#include "catalog/name_table.h"
#include "catalog/object_values.h"
#include "region/damage.h"

#include <string.h>

int mqx_cf_structure_find(struct mqx_region *region, const struct mqx_values *values, uint32_t *out)
{
    struct ps_object_name key = {.name_space = MQX_NAMES_STRUCTURE};
    MQX_ASSERT(mqx_lock_held(region, &region->header->catalog_lock));
    *out = 0;
    if (values->np_life != MQX_NP_IN_STRUCTURE) {
        return MQX_OK;
    }
    MQX_ASSERT(values->structure[0] != ' ');
    memcpy(key.name, values->structure, sizeof key.name);
    const int status = mqx_names_look_up(region, &key, out);
    if (status == MQX_OK && (*out == 0 || !mqx_object_usable(mqx_object(region, *out)))) {
        *out = 0;
        return mqx_fail(MQRC_UNKNOWN_OBJECT_NAME, "CFSTRUCT(%.48s) is not defined",
                        values->structure);
    }
    return status;
}

int mqx_cf_structure_relink(struct mqx_region *region, struct mqx_object *object)
{
    struct ps_object_name name = {.name_space = object->name_space, .type = object->type};
    struct mqx_attrs attrs;
    struct mqx_values values;
    uint32_t structure = 0;
    MQX_ASSERT(mqx_lock_held(region, &region->header->catalog_lock));
    if (object->np_life != MQX_NP_IN_STRUCTURE) {
        return MQX_OK;
    }
    int status = mqx_attrs_read(region, object->attrs, object->attrs_length, &attrs);
    if (status == MQX_OK) {
        status = mqx_definition_read_values(&name, attrs.list, attrs.length, &values);
    }
    if (status == MQX_OK && mqx_cf_structure_find(region, &values, &structure) == MQX_OK) {
        mqx_catalog_store32(region, &object->structure, structure);
    }
    return status;
}

bool mqx_cf_structure_next(const struct mqx_region *region, uint32_t structure, uint32_t *slot)
{
    const uint64_t used = mqx_area_used(region, MQX_AREA_OBJECTS);
    MQX_ASSERT(structure != 0);
    for (uint64_t at = (uint64_t)*slot + 1; at < used; at++) {
        const struct mqx_object *object = mqx_object(region, (uint32_t)at);
        const uint32_t state = object == NULL ? 0 : mqx_load_acquire(&object->state);
        if (state != MQX_OBJ_FREE && state != MQX_OBJ_DELETING &&
            mqx_load_relaxed(&object->structure) == structure) {
            *slot = (uint32_t)at;
            return true;
        }
    }
    return false;
}

/* Empty and closed? A put in progress checks the state again (mqx_queue_admit). */
static int check_idle(const struct mqx_object *queue)
{
    MQX_ASSERT(queue != NULL);
    if (mqx_load_relaxed(&queue->open_input) != 0 || mqx_load_relaxed(&queue->open_output) != 0) {
        return mqx_fail(MQRC_OBJECT_IN_USE, "%.48s is open", queue->name);
    }
    if (mqx_load_relaxed(&queue->present) != 0) {
        return mqx_fail(MQRC_Q_NOT_EMPTY, "%.48s holds messages: its structure, and the level of "
                        "that, stay", queue->name);
    }
    return MQX_OK;
}

int mqx_cf_structure_check_alter(struct mqx_region *region, uint32_t slot,
                                 const struct mqx_values *values)
{
    const struct mqx_object *object = mqx_object(region, slot);
    uint32_t structure = 0, queue = 0;
    MQX_ASSERT(mqx_lock_held(region, &region->header->catalog_lock));
    if (object == NULL) {
        return mqx_region_damage(region, "an object slot to be altered", slot);
    }
    int status = mqx_cf_structure_find(region, values, &structure);
    if (status == MQX_OK && structure != object->structure) {
        status = check_idle(object);
    }
    if (object->name_space == MQX_NAMES_STRUCTURE && values->max_depth < object->max_depth) {
        while (status == MQX_OK && mqx_cf_structure_next(region, slot, &queue)) {
            status = check_idle(mqx_object(region, queue));
        }
    }
    return status;
}

int mqx_cf_structure_check_delete(const struct mqx_region *region, uint32_t slot)
{
    const struct mqx_object *object = mqx_object(region, slot);
    uint32_t queue = 0;
    MQX_ASSERT(mqx_lock_held(region, &region->header->catalog_lock));
    if (object == NULL) {
        return mqx_region_damage(region, "an object slot to be deleted", slot);
    }
    if (object->name_space != MQX_NAMES_STRUCTURE || !mqx_cf_structure_next(region, slot, &queue)) {
        return MQX_OK;
    }
    return mqx_fail(MQRC_OBJECT_IN_USE, "queue %.48s is in CFSTRUCT(%.48s)",
                    mqx_object(region, queue)->name, object->name);
}
