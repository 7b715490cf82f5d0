/* Claims of slots.c: a slot is free once or used once, and a damaged list is not followed. */
#include "fixtures/region_fixture.h"

TEST(slots_are_given_once_named_by_the_pending_reference_and_used_again)
{
    uint32_t pending_ref = 0, first = 0, second = 0, third = 0;
    region_begin();
    CHECK_INT(mqx_slot_take(&region, MQX_AREA_OBJECTS, &pending_ref, &first), 0);
    CHECK_INT(pending_ref, first);
    CHECK_INT(mqx_object(&region, first)->state, MQX_OBJ_DEFINING);
    const uint32_t generation = mqx_object(&region, first)->generation;
    CHECK_INT(mqx_slot_take(&region, MQX_AREA_OBJECTS, NULL, &second), 0);
    CHECK(first != second);
    CHECK_INT(mqx_slot_give(&region, MQX_AREA_OBJECTS, first), 0);
    CHECK_INT(mqx_object(&region, first)->state, MQX_OBJ_FREE);
    CHECK_INT(mqx_slot_take(&region, MQX_AREA_OBJECTS, NULL, &third), 0);
    CHECK_INT(third, first);
    CHECK_INT(mqx_object(&region, third)->generation, generation + 1);
    CHECK_INT(mqx_slot_take(&region, MQX_AREA_CONTEXTS, NULL, &first), 0);
    CHECK_INT(mqx_context(&region, first)->state, MQX_CTX_IDLE);
    CHECK_INT(mqx_slot_take(&region, MQX_AREA_HANDLES, NULL, &first), 0);
    CHECK_INT(mqx_handle(&region, first)->state, 1);
}

TEST(a_used_up_area_of_slots_says_2071)
{
    struct mqx_region_plan plan = region_plan();
    uint32_t slot = 0, count = 0;
    int status = 0;
    plan.size = 16 << 20;
    region_begin_with(&plan);
    while (status == 0 && count < 100000) {
        status = mqx_slot_take(&region, MQX_AREA_HANDLES, NULL, &slot);
        count += status == 0;
    }
    CHECK_INT(status, MQRC_STORAGE_NOT_AVAILABLE);
    CHECK_INT(mqx_slot_give(&region, MQX_AREA_HANDLES, 7), 0);
    CHECK_INT(mqx_slot_take(&region, MQX_AREA_HANDLES, NULL, &slot), 0);
    CHECK_INT(slot, 7);
}

static void take_a_context(void *arg)
{
    mqx_ignore(mqx_slot_take(&region, MQX_AREA_CONTEXTS, arg, (uint32_t[1]){0}));
}

TEST(the_slot_that_a_dead_process_took_is_named_and_has_its_owner)
{
    region_begin();
    uint32_t *word = &region.header->name_bucket_count; /* any word of the region */
    region.process = 9;
    killed_after(take_a_context, word);
    const struct mqx_context *context = mqx_context(&region, *word);
    CHECK(context != NULL);
    CHECK_INT(context->state, MQX_CTX_IDLE);
    CHECK_INT(context->process, 9);
}

static void find_damage(enum mqx_area_kind kind)
{
    uint32_t slot = 0;
    CHECK_INT(mqx_slot_take(&region, kind, NULL, &slot), MQRC_Q_MGR_NOT_AVAILABLE);
    CHECK(mqx_region_damaged());
    CHECK_INT(mqx_region_stopped(&region), MQX_STOP_BROKEN);
}

TEST(a_damaged_list_or_count_of_slots_stops_the_queue_manager)
{
    static const enum mqx_area_kind kinds[] = {MQX_AREA_OBJECTS, MQX_AREA_CONTEXTS,
                                               MQX_AREA_HANDLES};
    uint32_t slot = 0;
    for (size_t i = 0; i < MQX_ARRAY_COUNT(kinds); i++) {
        region_begin();
        struct mqx_area *area = &region.header->area[kinds[i]];
        CHECK_INT(mqx_slot_take(&region, kinds[i], NULL, &slot), 0);
        area->free_head = slot; /* a slot in use is on the list */
        find_damage(kinds[i]);
        area->free_head = UINT32_MAX;
        find_damage(kinds[i]);
        area->free_head = 0;
        area->used = UINT64_MAX;
        find_damage(kinds[i]);
        CHECK_INT(mqx_slot_give(&region, kinds[i], UINT32_MAX), MQRC_Q_MGR_NOT_AVAILABLE);
        CHECK(mqx_region_damaged());
    }
}

TEST(the_fixture_is_removed)
{
    region_end();
}

TEST_MAIN()
