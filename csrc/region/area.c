/*
 * area.c - see area.h.
 */
#include "region/area.h"

#include "base/assert.h"
#include "base/atomic.h"

uint32_t mqx_area_item_size(enum mqx_area_kind kind)
{
    static const uint32_t sizes[MQX_AREA_COUNT] = {
        [MQX_AREA_OBJECTS] = sizeof(struct mqx_object),
        [MQX_AREA_CONTEXTS] = sizeof(struct mqx_context),
        [MQX_AREA_HANDLES] = sizeof(struct mqx_handle),
        [MQX_AREA_MESSAGES] = sizeof(struct mqx_message),
        [MQX_AREA_ARENA] = MQX_CELL,
    };
    MQX_ASSERT(kind < MQX_AREA_COUNT);
    MQX_ASSERT(sizes[kind] % MQX_CELL == 0);
    return sizes[kind];
}

/* Bytes of the area that are certainly backed by memory. */
static uint64_t sure_within(const struct mqx_area *area, uint64_t space)
{
    const uint64_t capacity = mqx_load_acquire(&area->capacity);
    const uint64_t other = ~mqx_load_acquire(&area->capacity_inverse);
    const uint64_t sure = capacity < other ? capacity : other;
    MQX_ASSERT(area != NULL);
    return sure < space ? sure : space;
}

uint64_t mqx_area_sure(const struct mqx_region *region, enum mqx_area_kind kind)
{
    MQX_ASSERT(kind < MQX_AREA_COUNT);
    MQX_ASSERT(region->reach.space[kind] > 0);
    MQX_ASSERT(region->reach.space[kind] % MQX_CELL == 0);
    return sure_within(&region->header->area[kind], region->reach.space[kind]);
}

uint64_t mqx_area_items(const struct mqx_region *region, enum mqx_area_kind kind)
{
    MQX_ASSERT(region->base != NULL);
    MQX_ASSERT(kind < MQX_AREA_COUNT);
    return mqx_area_sure(region, kind) / mqx_area_item_size(kind);
}

uint64_t mqx_area_used_within(const struct mqx_area *area, enum mqx_area_kind kind, uint64_t space)
{
    const uint64_t used = mqx_load_acquire(&area->used);
    const bool twice = kind <= MQX_AREA_HANDLES; /* the other areas have the word once */
    const uint64_t other = twice ? ~mqx_load_acquire(&area->used_inverse) : used;
    const uint64_t most = sure_within(area, space) / mqx_area_item_size(kind);
    const uint64_t high = used > other ? used : other;
    MQX_ASSERT(kind < MQX_AREA_COUNT);
    MQX_ASSERT(area != NULL);
    return high < most ? high : most > 0 ? most : 1; /* slot 0 counts without memory, too */
}

uint64_t mqx_area_used(const struct mqx_region *region, enum mqx_area_kind kind)
{
    MQX_ASSERT(region->base != NULL);
    MQX_ASSERT(kind < MQX_AREA_COUNT);
    return mqx_area_used_within(&region->header->area[kind], kind, region->reach.space[kind]);
}

bool mqx_area_words_agree(uint64_t word, uint64_t inverse)
{
    MQX_STATIC_ASSERT(sizeof word == sizeof(((struct mqx_area *)0)->used), "words of 64 bits");
    return word == ~inverse;
}

void mqx_area_set_used(struct mqx_area *area, uint64_t used)
{
    MQX_ASSERT(area != NULL);
    MQX_ASSERT(used > 0);
    area->used = used;
    area->used_inverse = ~used;
}
