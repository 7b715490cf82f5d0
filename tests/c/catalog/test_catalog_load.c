/*
 * test_catalog_load.c - proves catalog_load.h: of several definitions of a slot the newest counts,
 * names are unique in the end, and what a file says is validated. The definitions are loaded into
 * the empty catalog of an attached process.
 */
#include "fixtures/catalog_fixture.h"

static int load(uint32_t slot, uint32_t generation, const char *name, int64_t priority)
{
    struct fixture_attrs attrs = {.length = 0};
    fixture_attr(&attrs, 6, priority);
    const struct mqx_definition def = fixture_definition(name, &attrs);
    return mqx_catalog_load(process.store, slot, generation, &def);
}

TEST(the_newest_definition_of_a_slot_counts_whatever_the_order)
{
    struct fixture_queue q;
    start();
    CHECK_INT(load(3, 5, "OLD", 1), 0);
    CHECK_INT(load(3, 6, "NEW", 2), 0);  /* another object in the same slot */
    CHECK_INT(load(3, 5, "OLD", 3), 0);  /* of one that has been deleted since: no effect */
    CHECK_INT(load(3, 6, "NEW", 4), 0);  /* an alter of it */
    CHECK_INT(load(3, 5, "OLD", 5), 0);  /* no effect, again */
    CHECK_INT(mqx_catalog_loaded(process.store), 0);
    CHECK_INT(fixture_find(&process, "OLD", &q), MQRC_UNKNOWN_OBJECT_NAME);
    CHECK_INT(fixture_find(&process, "NEW", &q), 0);
    CHECK_INT(q.slot, 3);
    CHECK_INT(q.generation, 6);
    CHECK_INT(object_of(q)->def_priority, 4);
}

TEST(free_slots_below_the_highest_are_used_first)
{
    struct fixture_queue q;
    start();
    CHECK_INT(load(3, 1, "C", 0), 0);
    CHECK_INT(mqx_catalog_loaded(process.store), 0);
    CHECK_INT(fixture_define(&process, "A", NULL, &q), 0);
    CHECK_INT(q.slot, 1);
    CHECK_INT(fixture_define(&process, "B", NULL, &q), 0);
    CHECK_INT(q.slot, 2);
    CHECK_INT(fixture_define(&process, "D", NULL, &q), 0);
    CHECK_INT(q.slot, 4);
}

TEST(a_name_may_be_met_twice_on_the_way_but_not_in_the_end)
{
    start();
    CHECK_INT(load(1, 1, "Q", 0), 0);
    CHECK_INT(load(2, 1, "Q", 0), 0);
    CHECK_INT(load(1, 2, "R", 0), 0); /* the first one had been deleted */
    CHECK_INT(mqx_catalog_loaded(process.store), 0);
    CHECK_INT(load(3, 1, "R", 0), 0);
    CHECK_INT(mqx_catalog_loaded(process.store), MQRC_OBJECT_DAMAGED);
    CHECK(strstr(mqx_error_text(), "twice") != NULL);
}

TEST(a_stored_definition_that_is_none_is_refused_with_the_reason_in_the_text)
{
    struct fixture_attrs attrs = {.length = 0};
    start();
    CHECK_INT(load(1, 1, "Q", 10), MQRC_OBJECT_DAMAGED);
    CHECK(strstr(mqx_error_text(), "object 1") != NULL);
    CHECK_INT(load(1, 1, " Q", 1), MQRC_OBJECT_DAMAGED);
    fixture_attr(&attrs, 7, MQX_TEMPORARY);
    const struct mqx_definition def = fixture_definition("Q", &attrs);
    CHECK_INT(mqx_catalog_load(process.store, 1, 1, &def), MQRC_OBJECT_DAMAGED);
    CHECK_INT(load(0, 1, "Q", 1), MQRC_STORAGE_NOT_AVAILABLE);
    CHECK_INT(load(UINT32_MAX, 1, "Q", 1), MQRC_STORAGE_NOT_AVAILABLE);
    CHECK_INT(count_objects(), 0);
}

TEST(limits_of_the_queue_manager_take_effect_when_all_is_loaded)
{
    struct fixture_attrs attrs = {.length = 0};
    start();
    fixture_attr(&attrs, 33, 123);
    struct mqx_definition def = fixture_definition("QM1", &attrs);
    def.name.name_space = MQX_NAMES_MANAGER;
    def.name.type = 5;
    CHECK_INT(mqx_catalog_load(process.store, 1, 1, &def), 0);
    CHECK(region_of()->header->max_uncommitted != 123);
    CHECK_INT(mqx_catalog_loaded(process.store), 0);
    CHECK_INT(region_of()->header->max_uncommitted, 123);
}

TEST(the_fixture_is_cleared_away)
{
    stop();
    CHECK(process.store->files == NULL);
}

TEST_MAIN()
