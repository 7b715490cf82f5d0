/* Claims of area.h: a damaged capacity or high water never leads beyond an area's memory, and never
 * makes a loop leave out slots. */
#include "fixtures/region_fixture.h"

#include "region/slots.h"

enum { SLOT = sizeof(struct mqx_context) };

static struct mqx_area *contexts(void)
{
    return &region.header->area[MQX_AREA_CONTEXTS];
}

static void take_slots(uint32_t count)
{
    uint32_t slot = 0;
    for (uint32_t i = 0; i < count; i++) {
        CHECK_INT(mqx_slot_take(&region, MQX_AREA_CONTEXTS, NULL, &slot), 0);
    }
}

TEST(a_damaged_capacity_hands_out_nothing_beyond_the_memory_of_the_area)
{
    static const uint64_t values[] = {UINT64_MAX, UINT64_C(1) << 50, UINT64_C(1) << 33};
    for (size_t i = 0; i < MQX_ARRAY_COUNT(values); i++) {
        region_begin();
        const uint64_t capacity = contexts()->capacity;
        contexts()->capacity = values[i];
        CHECK(!mqx_area_has(&region, MQX_AREA_CONTEXTS, capacity + 1));
        CHECK(mqx_context(&region, (uint32_t)(capacity / SLOT)) == NULL);
        CHECK(mqx_context(&region, UINT32_MAX) == NULL);
        CHECK(mqx_context(&region, 1) != NULL);
        contexts()->capacity = capacity;
        contexts()->capacity_inverse = ~values[i];
        CHECK(mqx_context(&region, UINT32_MAX) == NULL);
        contexts()->capacity = values[i]; /* both words: the address space is the bound */
        CHECK(!mqx_area_has(&region, MQX_AREA_CONTEXTS,
                                region.reach.space[MQX_AREA_CONTEXTS] + 1));
    }
}

TEST(what_this_process_knows_to_be_backed_stays_usable_when_the_capacity_is_damaged)
{
    region_begin();
    CHECK(mqx_context(&region, 1) != NULL);
    contexts()->capacity = 0;
    CHECK(mqx_context(&region, 1) != NULL);
}

TEST(a_damaged_high_water_neither_lengthens_a_loop_beyond_the_memory_nor_hides_a_slot)
{
    static const uint64_t values[] = {0, 1, UINT64_MAX, UINT64_C(1) << 40, 0x7fffffff};
    for (size_t i = 0; i < MQX_ARRAY_COUNT(values); i++) {
        region_begin();
        take_slots(3);
        CHECK_INT(mqx_area_used(&region, MQX_AREA_CONTEXTS), 4);
        const uint64_t most = contexts()->capacity / SLOT;
        contexts()->used = values[i];
        const uint64_t used = mqx_area_used(&region, MQX_AREA_CONTEXTS);
        CHECK(used >= 4 && used <= most);
        contexts()->used = 4;
        contexts()->used_inverse = ~values[i];
        CHECK(mqx_area_used(&region, MQX_AREA_CONTEXTS) >= 4);
        CHECK(mqx_area_used(&region, MQX_AREA_CONTEXTS) <= most);
    }
}

TEST(a_slot_is_not_given_out_by_a_damaged_high_water)
{
    uint32_t slot = 0;
    region_begin();
    take_slots(3);
    contexts()->used += 5;
    CHECK_INT(mqx_slot_take(&region, MQX_AREA_CONTEXTS, NULL, &slot), MQRC_Q_MGR_NOT_AVAILABLE);
    CHECK_STR(mqx_region_damage_text(&region), "the count of used slots (9)");
}

TEST(growth_refuses_a_damaged_capacity_and_a_need_that_cannot_be_one)
{
    region_begin();
    contexts()->capacity += MQX_PAGE_SIZE;
    CHECK_INT(mqx_region_grow(&region, MQX_AREA_CONTEXTS, UINT64_C(1) << 20),
              MQRC_Q_MGR_NOT_AVAILABLE);
    region_begin();
    region.header->ready = 1;
    CHECK_INT(mqx_region_grow(&region, MQX_AREA_CONTEXTS, UINT64_C(64) << 20),
              MQRC_Q_MGR_NOT_AVAILABLE);
    CHECK_STR(mqx_region_damage_text(&region), "the capacity of an area (1)");
}

static void die_in_growth(void *arg)
{
    (void)arg;
    struct mqx_lock *lock = &region.header->growth_lock;
    mqx_ignore(mqx_lock_take(&region, lock));
    mqx_undo_store64(region.base, lock, &contexts()->capacity_inverse, 0);
}

TEST(a_growth_that_died_between_its_two_words_is_undone)
{
    region_begin();
    const uint64_t capacity = contexts()->capacity;
    killed_after(die_in_growth, NULL);
    CHECK(mqx_area_has(&region, MQX_AREA_CONTEXTS, capacity));
    CHECK_INT(mqx_region_grow(&region, MQX_AREA_CONTEXTS, capacity + 1), 0);
    CHECK(mqx_area_words_agree(contexts()->capacity, contexts()->capacity_inverse));
    CHECK(contexts()->capacity > capacity);
}

TEST(every_area_has_items_of_the_size_that_its_struct_has)
{
    region_begin();
    for (int kind = 0; kind < MQX_AREA_COUNT; kind++) {
        CHECK_INT(region.header->area[kind].item_size,
                  mqx_area_item_size((enum mqx_area_kind)kind));
    }
    mqx_area_set_used(contexts(), 7);
    CHECK(mqx_area_words_agree(contexts()->used, contexts()->used_inverse));
    region_end();
}

TEST_MAIN()
