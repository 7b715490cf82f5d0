/*
 * slots.c - see slots.h.
 */
#include "region/slots.h"

#include "base/error.h"
#include "region/region.h"

/* What taking and giving change in a slot, by kind. NULL: the slot is not there. */
struct slot_fields {
    uint32_t *next_free;
    uint32_t *state;
    uint32_t *process;    /* NULL: the slot does not name its owner */
    uint32_t *generation; /* NULL: the slot has none */
    uint32_t taken;       /* state of a slot that was just taken; FREE is 0 for all kinds */
};
MQX_STATIC_ASSERT(MQX_CTX_FREE == 0 && MQX_HANDLE_FREE == 0 && MQX_OBJ_FREE == 0, "state FREE");

static bool has_slots(enum mqx_area_kind kind)
{
    MQX_ASSERT(kind < MQX_AREA_COUNT);
    return kind == MQX_AREA_OBJECTS || kind == MQX_AREA_CONTEXTS || kind == MQX_AREA_HANDLES;
}

static bool find_fields(const struct mqx_region *region, enum mqx_area_kind kind, uint32_t slot,
                        struct slot_fields *out)
{
    MQX_ASSERT(out != NULL);
    MQX_ASSERT(has_slots(kind));
    *out = (struct slot_fields){0};
    if (kind == MQX_AREA_CONTEXTS) {
        struct mqx_context *context = mqx_context(region, slot);
        if (context != NULL) {
            *out = (struct slot_fields){&context->next_free, &context->state, &context->process,
                                        NULL, MQX_CTX_IDLE};
        }
    } else if (kind == MQX_AREA_HANDLES) {
        struct mqx_handle *handle = mqx_handle(region, slot);
        if (handle != NULL) {
            *out = (struct slot_fields){&handle->next_free, &handle->state, &handle->process, NULL,
                                        MQX_HANDLE_OPEN};
        }
    } else {
        struct mqx_object *object = mqx_object(region, slot);
        if (object != NULL) {
            *out = (struct slot_fields){&object->next_free, &object->state, NULL,
                                        &object->generation, MQX_OBJ_DEFINING};
        }
    }
    return out->state != NULL;
}

static void store32(struct mqx_region *region, uint32_t *at, uint32_t value)
{
    MQX_ASSERT((unsigned char *)at > region->base);
    MQX_ASSERT(mqx_lock_held(region, &region->header->slots_lock));
    mqx_undo_store32(region->base, &region->header->slots_lock, at, value);
}

/* The first of the free list, else the next one never used. */
static int unlist_slot(struct mqx_region *region, enum mqx_area_kind kind, uint32_t *out)
{
    MQX_ASSERT(out != NULL);
    MQX_ASSERT(mqx_lock_held(region, &region->header->slots_lock));
    struct mqx_area *area = &region->header->area[kind];
    struct slot_fields fields;
    *out = area->free_head;
    if (*out != 0) {
        if (!find_fields(region, kind, *out, &fields) || *fields.state != 0) {
            return mqx_region_damage(region, "a list of free slots", *out);
        }
        store32(region, &area->free_head, *fields.next_free);
        store32(region, fields.next_free, 0);
        return MQX_OK;
    }
    if (area->used == 0 || area->used > UINT32_MAX || /* 0: no growth would ever help */
        !mqx_area_words_agree(area->used, area->used_inverse)) {
        return mqx_region_damage(region, "the count of used slots", area->used);
    }
    *out = (uint32_t)area->used;
    if (!find_fields(region, kind, *out, &fields)) {
        return MQX_NEED_GROWTH;
    }
    struct mqx_lock *lock = &region->header->slots_lock;
    mqx_undo_store64(region->base, lock, &area->used_inverse, ~(area->used + 1));
    mqx_undo_store64(region->base, lock, &area->used, area->used + 1);
    return MQX_OK;
}

static int take_locked(struct mqx_region *region, enum mqx_area_kind kind, uint32_t *pending_ref,
                       uint32_t *out)
{
    MQX_ASSERT(out != NULL);
    MQX_ASSERT(pending_ref == NULL || (unsigned char *)pending_ref > region->base);
    struct slot_fields fields;
    const int status = unlist_slot(region, kind, out);
    if (status != MQX_OK) {
        return status;
    }
    MQX_ASSERT(*out != 0);
    if (!find_fields(region, kind, *out, &fields)) {
        return mqx_region_damage(region, "the memory of an area of slots", *out);
    }
    if (fields.process != NULL) {
        store32(region, fields.process, region->process);
    }
    store32(region, fields.state, fields.taken);
    if (pending_ref != NULL) {
        store32(region, pending_ref, *out);
    }
    return MQX_OK;
}

int mqx_slot_take(struct mqx_region *region, enum mqx_area_kind kind, uint32_t *pending_ref,
                  uint32_t *out)
{
    MQX_ASSERT(region->base != NULL);
    struct mqx_lock *lock = &region->header->slots_lock;
    struct mqx_area *area = &region->header->area[kind];
    MQX_ASSERT(has_slots(kind));
    MQX_ASSERT(out != NULL);
    for (;;) {
        int status = mqx_lock_enter(region, lock);
        if (status != MQX_OK) {
            return status;
        }
        status = take_locked(region, kind, pending_ref, out);
        if (status == MQX_OK) {
            mqx_undo_commit(lock);
        } else {
            mqx_undo_rollback(region, lock);
        }
        const uint64_t wanted = (area->used + 1) * mqx_area_item_size(kind);
        mqx_lock_drop(region, lock);
        if (status != MQX_NEED_GROWTH) {
            return status;
        }
        status = mqx_region_grow(region, kind, wanted);
        if (status != MQX_OK) {
            return status;
        }
    }
}

int mqx_slot_give(struct mqx_region *region, enum mqx_area_kind kind, uint32_t slot)
{
    MQX_ASSERT(region->base != NULL);
    struct mqx_lock *lock = &region->header->slots_lock;
    struct mqx_area *area = &region->header->area[kind];
    struct slot_fields fields;
    MQX_ASSERT(has_slots(kind));
    MQX_ASSERT(slot != 0);
    if (!find_fields(region, kind, slot, &fields)) {
        return mqx_region_damage(region, "a slot to be given back", slot);
    }
    int status = mqx_lock_take(region, lock);
    if (status != MQX_OK) {
        return status;
    }
    if (fields.generation != NULL) {
        store32(region, fields.generation, *fields.generation + 1);
    }
    store32(region, fields.state, 0);
    store32(region, fields.next_free, area->free_head);
    store32(region, &area->free_head, slot);
    mqx_undo_commit(lock);
    mqx_lock_drop(region, lock);
    return MQX_OK;
}
