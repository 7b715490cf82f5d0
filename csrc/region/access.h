/*
 * access.h - checked access to what lies in the region, by slot or cell reference.
 *
 * A reference was read from shared memory, so it is validated in every build (rule 28): NULL when
 * it is 0 or when the item does not lie wholly in memory of its area that this process may touch
 * (reach.h). Callers report NULL with mqx_region_damage(), or find nothing.
 *
 * Locks: none. What may be read or changed behind the address is stated in the struct's header.
 */
#ifndef PENSTOCK_ACCESS_H
#define PENSTOCK_ACCESS_H

#include "base/assert.h"
#include "base/atomic.h"
#include "region/area.h"
#include "region/reach.h"

/* `size` is a constant at each use: an area's item_size was compared with it when the region was
 * mapped. */
static MQX_ALWAYS_INLINE void *
mqx_item(const struct mqx_region *region, enum mqx_area_kind kind, uint64_t slot, uint64_t size)
{
    const uint64_t at = slot * size;
    MQX_ASSERT(region->base != NULL);
    MQX_ASSERT(kind < MQX_AREA_COUNT);
    MQX_ASSERT(size % MQX_CELL == 0);
    if (MQX_UNLIKELY(slot == 0 || !mqx_area_has(region, kind, at + size))) {
        return NULL;
    }
    MQX_ASSERT(region->area[kind] > region->base);
    return region->area[kind] + at;
}
static inline struct mqx_object *mqx_object(const struct mqx_region *region, uint32_t slot)
{
    MQX_ASSERT(region != NULL);
    return mqx_item(region, MQX_AREA_OBJECTS, slot, sizeof(struct mqx_object));
}
static inline struct mqx_context *mqx_context(const struct mqx_region *region, uint32_t slot)
{
    MQX_ASSERT(region != NULL);
    return mqx_item(region, MQX_AREA_CONTEXTS, slot, sizeof(struct mqx_context));
}
static inline struct mqx_handle *mqx_handle(const struct mqx_region *region, uint32_t slot)
{
    MQX_ASSERT(region != NULL);
    return mqx_item(region, MQX_AREA_HANDLES, slot, sizeof(struct mqx_handle));
}
static inline struct mqx_message *mqx_message(const struct mqx_region *region, uint32_t slot)
{
    MQX_ASSERT(region != NULL);
    return mqx_item(region, MQX_AREA_MESSAGES, slot, sizeof(struct mqx_message));
}
/* The first of the cells that the reference names; how many there are, the caller knows. */
static inline void *mqx_cells(const struct mqx_region *region, uint32_t cell)
{
    MQX_ASSERT(region != NULL);
    return mqx_item(region, MQX_AREA_ARENA, cell, MQX_CELL);
}

static inline bool mqx_object_is_temporary(const struct mqx_object *object)
{
    MQX_ASSERT(object != NULL);
    MQX_ASSERT((uintptr_t)object % MQX_CELL == 0);
    return mqx_load_relaxed(&object->definition_type) == MQX_TEMPORARY;
}
static inline struct mqx_stripe *mqx_stripe_of(const struct mqx_region *region, uint32_t object)
{
    MQX_ASSERT(region->stripes != NULL);
    MQX_ASSERT(region->stripe_mask < MQX_STRIPE_MAX);
    return &region->stripes[object & region->stripe_mask];
}
static inline struct mqx_process *mqx_process_slot(const struct mqx_region *region, uint32_t slot)
{
    MQX_ASSERT(region != NULL);
    MQX_ASSERT(region->header != NULL);
    return &region->header->process[slot % MQX_PROCESS_MAX];
}

#endif
