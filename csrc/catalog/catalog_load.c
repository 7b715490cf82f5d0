/*
 * catalog_load.c - see catalog_load.h.
 */
#include "catalog/catalog_load.h"

#include "base/assert.h"
#include "base/error.h"
#include "catalog/attr_cells.h"
#include "catalog/catalog_steps.h"
#include "catalog/cf_structure.h"
#include "catalog/name_table.h"
#include "catalog/object_values.h"
#include "region/damage.h"

#include <string.h>

enum { TEXT_MAX = 256 };

static int make_room(struct mqx_region *region, uint32_t slot)
{
    struct mqx_area *area = &region->header->area[MQX_AREA_OBJECTS];
    const uint64_t bytes = ((uint64_t)slot + 1) * sizeof(struct mqx_object);
    const uint64_t space = region->reach.space[MQX_AREA_OBJECTS];
    if (slot == 0 || bytes > space) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE,
                        "object slot %u: the shared region has address space for %llu objects",
                        slot, (unsigned long long)(space / sizeof(struct mqx_object)));
    }
    const int status = mqx_region_grow(region, MQX_AREA_OBJECTS, bytes);
    if (status == MQX_OK && area->used <= slot) {
        mqx_area_set_used(area, (uint64_t)slot + 1);
    }
    MQX_ASSERT(status != MQX_OK || area->used > slot);
    return status;
}

/* Takes an object out of its chain and frees its cells. */
static int remove_older(struct mqx_region *region, uint32_t slot)
{
    struct mqx_object *object = mqx_object(region, slot);
    MQX_ASSERT(object != NULL);
    int status = mqx_catalog_take_lock(region);
    if (status != MQX_OK) {
        return status;
    }
    status = mqx_names_unlink(region, slot);
    mqx_catalog_commit_and_drop(region);
    const uint32_t cell = object->attrs;
    object->attrs = 0;
    return status == MQX_OK ? mqx_attrs_free(region, cell, object->attrs_length, NULL) : status;
}

/* A newer definition of an object that stays: its messages and counts must not be touched. */
static int replace(struct mqx_region *region, struct mqx_object *object,
                   const struct mqx_definition *def, uint32_t cell, const struct mqx_values *values)
{
    const uint32_t old_cell = object->attrs, old_length = object->attrs_length;
    MQX_ASSERT(cell != 0);
    MQX_ASSERT(cell != old_cell);
    object->attrs = cell;
    object->attrs_length = def->attrs_length;
    mqx_object_fill_values(object, values);
    return mqx_attrs_free(region, old_cell, old_length, NULL);
}

static int insert(struct mqx_region *region, uint32_t slot, uint32_t generation,
                  const struct mqx_definition *def, uint32_t cell, const struct mqx_values *values)
{
    struct mqx_object *object = mqx_object(region, slot);
    MQX_ASSERT(object != NULL);
    MQX_ASSERT(object->present == 0); /* messages are loaded after definitions */
    int status = mqx_object_fill(region, object, def, cell, values);
    if (status == MQX_OK) {
        object->generation = generation;
        status = mqx_catalog_take_lock(region);
    }
    if (status == MQX_OK) {
        status = mqx_names_link(region, slot);
        mqx_catalog_commit_and_drop(region);
        mqx_store_release(&object->state, MQX_OBJ_ACTIVE);
    }
    return status;
}

static bool same_key(const struct mqx_object *object, const struct ps_object_name *name)
{
    return object->name_space == name->name_space && object->type == name->type &&
           memcmp(object->name, name->name, sizeof object->name) == 0;
}

static int check_stored(uint32_t slot, const struct mqx_definition *def, struct mqx_values *out)
{
    char text[TEXT_MAX];
    int status = mqx_definition_check(def, out);
    if (status == MQX_OK) {
        status = mqx_definition_check_type(def, out, false); /* temporary ones are never stored */
    }
    if (status == MQX_OK) {
        MQX_ASSERT(mqx_definition_type(def, out) != MQX_TEMPORARY);
        return MQX_OK;
    }
    (void)strncpy(text, mqx_error_text(), sizeof text - 1);
    text[sizeof text - 1] = '\0';
    return mqx_fail(MQRC_OBJECT_DAMAGED, "the stored definition of object %u: %s", slot, text);
}

int mqx_catalog_load(struct mqx_store *store, uint32_t slot, uint32_t generation,
                     const struct mqx_definition *def)
{
    struct mqx_region *region = &store->region;
    struct mqx_values values;
    uint32_t cell = 0;
    int status = check_stored(slot, def, &values);
    if (status == MQX_OK) {
        status = make_room(region, slot);
    }
    if (status != MQX_OK) {
        return status;
    }
    struct mqx_object *object = mqx_object(region, slot);
    if (object == NULL) {
        return mqx_region_damage(region, "the area of objects, slot", slot);
    }
    const bool defined = mqx_load_relaxed(&object->state) == MQX_OBJ_ACTIVE;
    if (defined && (int32_t)(object->generation - generation) > 0) {
        return MQX_OK; /* the record is about one that has been deleted since */
    }
    const bool stays = defined && object->generation == generation && same_key(object, &def->name);
    if (defined && !stays) {
        status = remove_older(region, slot);
    }
    if (status == MQX_OK) {
        status = mqx_attrs_store(store, def, NULL, &cell);
    }
    if (status != MQX_OK) {
        return status;
    }
    return stays ? replace(region, object, def, cell, &values)
                 : insert(region, slot, generation, def, cell, &values);
}

/* Catalog lock held. */
static int check_unique(struct mqx_region *region, const struct mqx_object *object, uint32_t slot)
{
    struct ps_object_name key = {.name_space = object->name_space};
    struct mqx_attrs attrs;
    uint32_t found = 0;
    MQX_ASSERT(mqx_lock_held(region, &region->header->catalog_lock));
    int status = mqx_attrs_read(region, object->attrs, object->attrs_length, &attrs);
    if (status != MQX_OK) {
        return status;
    }
    memcpy(key.name, object->name, sizeof key.name);
    key.instance = attrs.instance;
    status = mqx_names_look_up(region, &key, &found);
    if (status == MQX_OK && found != slot) {
        return mqx_fail(MQRC_OBJECT_DAMAGED,
                        "the files define \"%.48s\" twice, as object %u and %u", object->name,
                        slot, found);
    }
    return status;
}

/* What a definition means for others; every object is there by now. */
static int link_to_others(struct mqx_region *region, struct mqx_object *object, uint32_t slot)
{
    int status = mqx_catalog_take_lock(region);
    if (status != MQX_OK) {
        return status;
    }
    status = check_unique(region, object, slot);
    if (status == MQX_OK) {
        mqx_object_set_limits(region, object);
        status = mqx_cf_structure_relink(region, object);
    }
    mqx_catalog_commit_and_drop(region);
    return status;
}

int mqx_catalog_loaded(struct mqx_store *store)
{
    struct mqx_region *region = &store->region;
    struct mqx_area *area = &region->header->area[MQX_AREA_OBJECTS];
    int status = MQX_OK;
    const uint64_t used = mqx_area_used(region, MQX_AREA_OBJECTS);
    MQX_ASSERT(used > 0);
    area->free_head = 0;
    for (uint64_t slot = used - 1; slot > 0 && status == MQX_OK; slot--) {
        struct mqx_object *object = mqx_object(region, (uint32_t)slot);
        if (object == NULL) {
            return mqx_region_damage(region, "the number of objects", used);
        }
        if (mqx_load_relaxed(&object->state) == MQX_OBJ_FREE) {
            object->next_free = area->free_head;
            area->free_head = (uint32_t)slot;
        } else {
            status = link_to_others(region, object, (uint32_t)slot);
        }
    }
    return status;
}
