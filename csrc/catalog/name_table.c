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

struct link { /* a word that names an object's slot, and its complement */
    uint32_t *slot, *inverse;
};

static struct link bucket_of(const struct mqx_region *region, uint32_t name_space,
                             const char name[MQX_NAME_SIZE])
{
    const uint64_t hash = mqx_hash64(name, MQX_NAME_SIZE, region->tag_key ^ name_space);
    const uint64_t bucket = hash & region->name_mask;
    return (struct link){&region->names[bucket],
                         &region->names[bucket + region->name_mask + UINT64_C(1)]};
}

static struct link link_behind(struct mqx_object *object)
{
    return (struct link){&object->name_next, &object->name_next_inverse};
}

/* Both words are 0 until the first store. */
static bool is_sound(struct link link)
{
    return *link.inverse == ~*link.slot || (*link.inverse == 0 && *link.slot == 0);
}

static void set_link(struct mqx_region *region, struct link link, uint32_t slot)
{
    mqx_catalog_store32(region, link.slot, slot);
    mqx_catalog_store32(region, link.inverse, ~slot);
    MQX_ASSERT(is_sound(link));
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

/* A name that was damaged belongs into another chain, where it is not found. */
static bool has_its_name(const struct mqx_object *object)
{
    return object->name_sum == mqx_object_name_sum(object);
}

static int compare_key(const struct mqx_region *region, const struct mqx_object *object,
                       const struct ps_object_name *key, bool *out_equal)
{
    struct mqx_attrs attrs;
    *out_equal = false;
    if (MQX_UNLIKELY(!has_its_name(object))) {
        return mqx_region_damage(region, "the name of an object, its sum", object->name_sum);
    }
    if (object->name_space != key->name_space ||
        memcmp(object->name, key->name, sizeof object->name) != 0) {
        return MQX_OK;
    }
    const int status = mqx_attrs_read(region, object->attrs, object->attrs_length, &attrs);
    if (status == MQX_OK && MQX_UNLIKELY(attrs.instance != object->instance)) {
        return mqx_region_damage(region, "the instance of an object's name", attrs.instance);
    }
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
    int status = mqx_lock_take(region, &region->journal->ring_lock);
    if (status == MQX_OK) {
        *out = mqx_load_acquire(&object->state) == MQX_OBJ_DELETING;
        if (*out && MQX_UNLIKELY(object->deleted_generation != object->generation)) {
            status = mqx_region_damage(region, "an object that is DELETING but was not deleted",
                                       object->generation);
        }
        mqx_lock_drop(region, &region->journal->ring_lock);
    }
    return status;
}

int mqx_names_look_up(struct mqx_region *region, const struct ps_object_name *key,
                      uint32_t *out_slot)
{
    const bool deleted_ones = region->header->platform == MQX_PLATFORM_ZOS;
    const uint64_t limit = chain_limit(region);
    struct link link = bucket_of(region, key->name_space, key->name);
    MQX_ASSERT(mqx_lock_held(region, &region->header->catalog_lock));
    *out_slot = 0;
    for (uint64_t steps = 0; is_sound(link) && *link.slot != 0; steps++) {
        const uint32_t slot = *link.slot;
        struct mqx_object *object = mqx_object(region, slot);
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
        link = link_behind(object);
    }
    return is_sound(link) ? MQX_OK : damaged_chain(region, *link.slot);
}

int mqx_names_link(struct mqx_region *region, uint32_t slot)
{
    struct mqx_object *object = mqx_object(region, slot);
    if (object == NULL) {
        return damaged_chain(region, slot);
    }
    const struct link bucket = bucket_of(region, object->name_space, object->name);
    if (object->name_next != 0 || *bucket.slot == slot || !is_sound(bucket)) {
        return damaged_chain(region, slot); /* it is linked already */
    }
    set_link(region, link_behind(object), *bucket.slot);
    set_link(region, bucket, slot);
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
    struct link link = bucket_of(region, object->name_space, object->name);
    for (uint64_t steps = 0; is_sound(link) && *link.slot != 0 && *link.slot != slot; steps++) {
        struct mqx_object *before = mqx_object(region, *link.slot);
        if (before == NULL || steps > limit) {
            return damaged_chain(region, *link.slot);
        }
        link = link_behind(before);
    }
    if (!is_sound(link) || !is_sound(link_behind(object))) {
        return damaged_chain(region, slot);
    }
    if (*link.slot == slot) {
        set_link(region, link, object->name_next);
        set_link(region, link_behind(object), 0);
        MQX_ASSERT(*link.slot != slot);
    }
    return MQX_OK;
}
