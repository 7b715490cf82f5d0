/*
 * name_table.c - see name_table.h.
 */
#include "catalog/name_table.h"

#include "base/assert.h"
#include "base/checksum.h"
#include "base/error.h"
#include "catalog/attr_cells.h"
#include "catalog/object_values.h"
#include "region/damage.h"

#include <string.h>

static uint32_t *bucket_of(const struct mqx_region *region, uint32_t name_space,
                           const char name[MQX_NAME_SIZE])
{
    const uint64_t hash = mqx_hash64(name, MQX_NAME_SIZE, region->header->tag_key ^ name_space);
    return &region->names[hash & region->name_mask];
}

static int damaged_chain(const struct mqx_region *region, uint32_t slot)
{
    return mqx_region_damage(region, "a chain of object names, slot", slot);
}

/* A chain is no longer than this. */
static uint64_t chain_limit(const struct mqx_region *region)
{
    return mqx_area_used(region, MQX_AREA_OBJECTS);
}

static int compare_key(const struct mqx_region *region, const struct mqx_object *object,
                       const struct ps_object_name *key, bool *out_equal)
{
    struct mqx_attrs attrs;
    *out_equal = false;
    if (object->name_space != key->name_space ||
        memcmp(object->name, key->name, sizeof object->name) != 0) {
        return MQX_OK;
    }
    const int status = mqx_attrs_read(region, object->attrs, object->attrs_length, &attrs);
    *out_equal = status == MQX_OK && attrs.instance == key->instance;
    return status;
}

/* A deletion counts when its record is in the ring for good: the next owner of the ring lock undoes
 * it when the process died while appending. */
static int is_deleted(struct mqx_region *region, const struct mqx_object *object, bool *out)
{
    *out = mqx_load_acquire(&object->state) == MQX_OBJ_DELETING;
    if (!*out) {
        return MQX_OK;
    }
    const int status = mqx_lock_take(region, &region->journal->ring_lock);
    if (status == MQX_OK) {
        *out = mqx_load_acquire(&object->state) == MQX_OBJ_DELETING;
        mqx_lock_drop(region, &region->journal->ring_lock);
    }
    return status;
}

int mqx_names_look_up(struct mqx_region *region, const struct ps_object_name *key,
                      uint32_t *out_slot)
{
    const bool deleted_ones = region->header->platform == MQX_PLATFORM_ZOS;
    const uint64_t limit = chain_limit(region);
    MQX_ASSERT(mqx_lock_held(region, &region->header->catalog_lock));
    uint32_t slot = *bucket_of(region, key->name_space, key->name);
    *out_slot = 0;
    for (uint64_t steps = 0; slot != 0; steps++) {
        const struct mqx_object *object = mqx_object(region, slot);
        bool equal = false, deleted = false;
        if (object == NULL || steps > limit) {
            return damaged_chain(region, slot);
        }
        int status = compare_key(region, object, key, &equal);
        if (status == MQX_OK && equal && !deleted_ones) {
            status = is_deleted(region, object, &deleted);
        }
        if (status != MQX_OK) {
            return status;
        }
        if (equal && !deleted) {
            *out_slot = slot;
            return MQX_OK;
        }
        slot = object->name_next;
    }
    return MQX_OK;
}

int mqx_names_link(struct mqx_region *region, uint32_t slot)
{
    struct mqx_object *object = mqx_object(region, slot);
    if (object == NULL) {
        return damaged_chain(region, slot);
    }
    uint32_t *bucket = bucket_of(region, object->name_space, object->name);
    if (object->name_next != 0 || *bucket == slot) {
        return damaged_chain(region, slot); /* it is linked already */
    }
    mqx_catalog_store32(region, &object->name_next, *bucket);
    mqx_catalog_store32(region, bucket, slot);
    return MQX_OK;
}

int mqx_names_unlink(struct mqx_region *region, uint32_t slot)
{
    const uint64_t limit = chain_limit(region);
    struct mqx_object *object = mqx_object(region, slot);
    MQX_ASSERT(mqx_lock_held(region, &region->header->catalog_lock));
    if (object == NULL) {
        return damaged_chain(region, slot);
    }
    uint32_t *link = bucket_of(region, object->name_space, object->name);
    for (uint64_t steps = 0; *link != 0 && *link != slot; steps++) {
        struct mqx_object *before = mqx_object(region, *link);
        if (before == NULL || steps > limit) {
            return damaged_chain(region, *link);
        }
        link = &before->name_next;
    }
    if (*link == slot) {
        mqx_catalog_store32(region, link, object->name_next);
        mqx_catalog_store32(region, &object->name_next, 0);
        MQX_ASSERT(*link != slot);
    }
    return MQX_OK;
}
