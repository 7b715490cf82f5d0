/* Claims of access.h: a slot or cell reference that does not lie in an area's memory gives NULL. */
#include "fixtures/region_fixture.h"

TEST(nothing_beyond_an_areas_memory_is_handed_out)
{
    region_begin();
    const uint64_t most =
        region.header->area[MQX_AREA_CONTEXTS].capacity / sizeof(struct mqx_context);
    CHECK(mqx_context(&region, 0) == NULL);
    CHECK(mqx_context(&region, (uint32_t)most - 1) != NULL);
    CHECK(mqx_context(&region, (uint32_t)most) == NULL);
    CHECK(mqx_context(&region, UINT32_MAX) == NULL);
    CHECK(mqx_message(&region, UINT32_MAX) == NULL && mqx_cells(&region, UINT32_MAX) == NULL);
    CHECK(mqx_object(&region, 1) == NULL);
}

TEST(an_item_must_lie_wholly_in_the_memory_of_its_area)
{
    region_begin();
    struct mqx_area *area = &region.header->area[MQX_AREA_CONTEXTS];
    const uint64_t was = area->capacity, two = 2 * sizeof(struct mqx_context);
    region.reach.usable[MQX_AREA_CONTEXTS] = 0; /* the region's word counts */
    area->capacity = two - 1;
    CHECK(mqx_context(&region, 1) == NULL);
    area->capacity = two;
    CHECK(mqx_context(&region, 1) != NULL);
    CHECK(mqx_context(&region, 2) == NULL);
    area->capacity = was;
    CHECK(mqx_context(&region, 1) == (void *)(region.area[MQX_AREA_CONTEXTS] + 448));
}

TEST(any_object_maps_to_a_stripe_and_any_slot_to_an_attachment)
{
    region_begin();
    for (uint32_t i = 0; i < 4 * region_plan().stripe_count; i++) {
        CHECK(mqx_stripe_of(&region, i) == &region.stripes[i % region_plan().stripe_count]);
    }
    CHECK(mqx_stripe_of(&region, UINT32_MAX) == &region.stripes[region.stripe_mask]);
    CHECK(mqx_process_slot(&region, 7) == &region.header->process[7]);
    CHECK(mqx_process_slot(&region, MQX_PROCESS_MAX) == &region.header->process[0]);
}

TEST(the_fixture_is_removed)
{
    region_end();
}

TEST_MAIN()
