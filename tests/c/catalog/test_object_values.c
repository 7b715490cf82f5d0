/*
 * test_object_values.c - proves object_values.h: a slot is filled whole, values are replaced in one
 * micro-transaction, and only the queue manager's object sets limits.
 */
#include "fixtures/catalog_fixture.h"

#include "catalog/object_values.h"

static struct mqx_values values_of(const struct fixture_attrs *attrs)
{
    const struct mqx_definition def = fixture_definition("Q", attrs);
    struct mqx_values values;
    CHECK_INT(mqx_definition_check(&def, &values), 0);
    return values;
}

TEST(filling_a_slot_sets_every_value_and_forgets_what_was_there_before)
{
    struct fixture_attrs attrs = {.length = 0};
    struct mqx_object object;
    start();
    fixture_attr(&attrs, 6, 7);
    fixture_attr(&attrs, 15, 12);
    fixture_attr(&attrs, 57, 5);
    const struct mqx_definition def = fixture_definition("Q", &attrs);
    const struct mqx_values values = values_of(&attrs);
    memset(&object, 0xff, sizeof object);
    object.name_next = 0;
    CHECK_INT(mqx_object_fill(region_of(), &object, &def, 5, &values), 0);
    CHECK_INT(object.attrs, 5);
    CHECK_INT(object.attrs_length, attrs.length);
    CHECK_INT(object.def_priority, 7);
    CHECK_INT(object.max_depth, 12);
    CHECK_INT(object.special, MQX_SPECIAL_GROUP_INDEX);
    CHECK_INT(object.definition_type, MQX_PREDEFINED);
    CHECK_INT(object.present + object.waiters + object.open_input + object.changer, 0);
    CHECK_INT(object.pending_attrs + object.structure + object.failing + object.creator, 0);
    CHECK_INT(object.level[9].root + object.index[2] + object.exclusive_input, 0);
    object.name_next = 3;
    CHECK_INT(mqx_object_fill(region_of(), &object, &def, 5, &values), MQRC_Q_MGR_NOT_AVAILABLE);
    CHECK(is_stopped_by_damage("chain word"));
}

TEST(replaced_values_come_back_with_the_micro_transaction)
{
    struct fixture_queue q;
    struct fixture_attrs attrs = {.length = 0};
    start();
    CHECK_INT(fixture_define(&process, "Q", NULL, &q), 0);
    struct mqx_object *object = mqx_object(region_of(), q.slot);
    const struct mqx_object before = *object;
    fixture_attr(&attrs, 6, 7);
    fixture_attr(&attrs, 13, 1000);
    fixture_attr(&attrs, 16, 1);
    const struct mqx_values values = values_of(&attrs);
    CHECK_INT(mqx_catalog_take_lock(region_of()), 0);
    mqx_object_set_values(region_of(), object, &values);
    CHECK_INT(object->def_priority, 7);
    CHECK_INT(object->max_length, 1000);
    CHECK_INT(object->fifo, 1);
    mqx_undo_rollback(region_of(), &region_of()->header->catalog_lock);
    mqx_catalog_drop_lock(region_of());
    CHECK_MEM(object, &before, sizeof before);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(limits_are_those_of_the_queue_managers_object_and_absent_ones_stay)
{
    struct fixture_queue q;
    start();
    CHECK_INT(fixture_define(&process, "Q", NULL, &q), 0);
    struct mqx_header *header = region_of()->header;
    const uint32_t uncommitted = header->max_uncommitted, message = header->max_message;
    struct mqx_object object = *object_of(q);
    object.max_depth = 77;
    object.max_length = 40000;
    CHECK_INT(mqx_catalog_take_lock(region_of()), 0);
    mqx_object_set_limits(region_of(), &object); /* a queue */
    CHECK_INT(header->max_uncommitted, uncommitted);
    object.name_space = MQX_NAMES_MANAGER;
    object.max_length = 0;
    mqx_object_set_limits(region_of(), &object);
    CHECK_INT(header->max_uncommitted, 77);
    CHECK_INT(header->max_message, message);
    mqx_catalog_commit_and_drop(region_of());
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(an_object_is_usable_when_active_or_while_an_alter_is_logged)
{
    struct mqx_object object = {.state = MQX_OBJ_ACTIVE};
    CHECK(mqx_object_usable(&object));
    object.state = MQX_OBJ_LOGGED;
    CHECK(!mqx_object_usable(&object));
    object.pending_attrs = 9;
    CHECK(mqx_object_usable(&object));
    object.state = MQX_OBJ_DELETING;
    CHECK(!mqx_object_usable(&object));
}

TEST(the_fixture_is_cleared_away)
{
    stop();
    CHECK(process.store->files == NULL);
}

TEST_MAIN()
