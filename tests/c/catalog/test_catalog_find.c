/*
 * test_catalog_find.c - proves catalog_find.h: objects are found by the whole name and instance,
 * listed by slot, and read to the byte.
 */
#include "fixtures/catalog_fixture.h"

#include "catalog/attr_cells.h"

TEST(a_defined_queue_is_found_by_its_name_and_has_the_documented_defaults)
{
    struct fixture_queue q, found;
    start();
    CHECK_INT(fixture_find(&process, "ORDERS", &found), MQRC_UNKNOWN_OBJECT_NAME);
    CHECK(strstr(mqx_error_text(), "\"ORDERS\"") != NULL);
    CHECK_INT(fixture_define(&process, "ORDERS", NULL, &q), 0);
    CHECK_INT(fixture_find(&process, "ORDERS", &found), 0);
    CHECK_INT(found.slot, q.slot);
    CHECK_INT(found.generation, q.generation);
    CHECK(q.generation > 0);
    const struct mqx_object *object = object_of(q);
    CHECK_INT(object->state, MQX_OBJ_ACTIVE);
    CHECK_INT(object->max_depth, 5000);
    CHECK_INT(object->max_length, 4194304);
    CHECK_INT(object->def_priority, 0);
    CHECK_INT(object->def_persistence, 0);
    CHECK_INT(object->fifo, 0);
    CHECK_INT(object->put_inhibited, 0);
    CHECK_INT(object->get_inhibited, 0);
    CHECK_INT(object->npm_class, 0);
    CHECK_INT(object->np_life, 0);
    CHECK_INT(object->may_persist, 1);
    CHECK_INT(fixture_find(&process, "ORDERS2", &found), MQRC_UNKNOWN_OBJECT_NAME);
    CHECK_INT(fixture_find(&process, "ORDER", &found), MQRC_UNKNOWN_OBJECT_NAME);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(instances_of_one_name_are_different_objects)
{
    struct mqx_definition def = fixture_definition("CLUSTERED", NULL);
    uint32_t slot[3], generation;
    struct mqe_found found;
    start();
    for (uint64_t i = 0; i < 3; i++) {
        def.name.instance = i;
        CHECK_INT(mqx_catalog_define(process.store, process.context, &def, &slot[i], &generation),
                  0);
    }
    restart_killed();
    for (uint64_t i = 0; i < 3; i++) {
        CHECK_INT(mqx_catalog_find(process.store, MQX_NAMES_QUEUE, def.name.name, i, &found), 0);
        CHECK_INT(found.slot, slot[i]);
    }
    CHECK_INT(mqx_catalog_find(process.store, MQX_NAMES_QUEUE + 1, def.name.name, 0, &found),
              MQRC_UNKNOWN_OBJECT_NAME);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(an_attribute_list_of_48_kib_is_kept_to_the_byte)
{
    static unsigned char list[48 * 1024], back[48 * 1024];
    struct fixture_queue q;
    struct ps_object_name name;
    uint32_t length = 0;
    uint64_t version = 0;
    start();
    for (uint32_t at = 0, i = 0; at < sizeof list; at += 4096, i++) {
        const struct ps_attr head = {.selector = 9000 + (int32_t)i, .kind = 2, .length = 4088};
        memcpy(list + at, &head, sizeof head);
        memset(list + at + sizeof head, 'a' + (int)i, 4088);
    }
    struct mqx_definition def = fixture_definition("BIG", NULL);
    def.attrs = list;
    def.attrs_length = sizeof list;
    CHECK_INT(mqx_catalog_define(process.store, process.context, &def, &q.slot, &q.generation), 0);
    for (int round = 0; round < 3; round++) {
        CHECK_INT(mqx_catalog_read(process.store, q.slot, q.generation, &name, back, sizeof back,
                                   &length, &version), 0);
        CHECK_INT(length, sizeof list);
        CHECK_MEM(back, list, sizeof list);
        CHECK_INT(mqx_catalog_read(process.store, q.slot, q.generation, &name, back, 100, &length,
                                   &version), 0);
        CHECK_INT(length, sizeof list); /* the full length, though little fits */
        restart_killed();
        CHECK_INT(fixture_find(&process, "BIG", &q), 0);
    }
    def.attrs_length = sizeof list + 8;
    CHECK_INT(mqx_catalog_define(process.store, process.context, &def, &q.slot, &q.generation),
              MQRC_SELECTOR_ERROR);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(the_list_of_objects_ends_and_has_each_once)
{
    struct fixture_queue q;
    uint32_t slot = 0, generation = 0;
    start();
    CHECK_INT(mqx_catalog_next(process.store, &slot, &generation), MQRC_UNKNOWN_OBJECT_NAME);
    CHECK_INT(fixture_define(&process, "A", NULL, &q), 0);
    CHECK_INT(fixture_define(&process, "B", NULL, &q), 0);
    CHECK_INT(count_objects(), 2);
    CHECK_INT(delete_queue(q, false), 0);
    CHECK_INT(count_objects(), 1);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(a_definition_has_another_version_after_each_alter_and_an_alter_of_an_older_one_is_refused)
{
    struct fixture_queue q;
    struct ps_object_name name;
    uint32_t length = 0;
    uint64_t first = 0, second = 0;
    start();
    CHECK_INT(fixture_define(&process, "Q", NULL, &q), 0);
    const struct mqx_definition def = fixture_definition("Q", NULL);
    CHECK_INT(mqx_catalog_read(process.store, q.slot, q.generation, &name, NULL, 0, &length,
                               &first), 0);
    CHECK_INT(mqx_catalog_alter(process.store, process.context, q.slot, q.generation, &def, first,
                                0), 0);
    CHECK_INT(mqx_catalog_read(process.store, q.slot, q.generation, &name, NULL, 0, &length,
                               &second), 0);
    CHECK(first != 0 && second != 0 && first != second);
    CHECK_INT(mqx_catalog_alter(process.store, process.context, q.slot, q.generation, &def, first,
                                0), MQE_CHANGED);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(only_what_is_in_the_files_is_journalled)
{
    struct fixture_queue q;
    start();
    CHECK_INT(fixture_define(&process, "Q", NULL, &q), 0);
    CHECK(mqx_catalog_is_journalled(process.store, q.slot, q.generation));
    CHECK(!mqx_catalog_is_journalled(process.store, q.slot, q.generation + 1));
    mqx_object(region_of(), q.slot)->definition_type = MQX_TEMPORARY;
    CHECK(!mqx_catalog_is_journalled(process.store, q.slot, q.generation));
    mqx_object(region_of(), q.slot)->definition_type = MQX_PREDEFINED;
    CHECK_INT(delete_queue(q, false), 0);
    CHECK(!mqx_catalog_is_journalled(process.store, q.slot, q.generation));
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(a_damaged_reference_to_a_list_is_a_reason_code_and_stops_the_queue_manager)
{
    struct fixture_queue q;
    struct ps_object_name name;
    uint32_t length = 0;
    uint64_t version = 0;
    start();
    CHECK_INT(fixture_define(&process, "Q", NULL, &q), 0);
    mqx_object(region_of(), q.slot)->attrs = UINT32_MAX - 3;
    CHECK_INT(mqx_catalog_read(process.store, q.slot, q.generation, &name, NULL, 0, &length,
                               &version), MQRC_Q_MGR_NOT_AVAILABLE);
    CHECK(is_stopped_by_damage("attribute list"));
}

TEST(a_list_that_was_changed_in_the_region_is_not_read)
{
    struct fixture_queue q;
    struct ps_object_name name;
    struct mqx_attrs attrs;
    struct fixture_attrs given = {.length = 0};
    unsigned char list[64];
    uint32_t length = 0;
    uint64_t version = 0;
    start();
    fixture_attr(&given, 15, 77); /* MAXDEPTH */
    CHECK_INT(fixture_define(&process, "Q", &given, &q), 0);
    const struct mqx_object *object = mqx_object(region_of(), q.slot);
    CHECK_INT(mqx_attrs_read(region_of(), object->attrs, object->attrs_length, &attrs), 0);
    CHECK_INT(mqx_catalog_read(process.store, q.slot, q.generation, &name, list, sizeof list,
                               &length, &version), 0);
    ((unsigned char *)(uintptr_t)attrs.list)[length - 8]++;
    CHECK_INT(mqx_catalog_read(process.store, q.slot, q.generation, &name, list, 4, &length,
                               &version), 0); /* a part: the caller comes again */
    CHECK_INT(mqx_catalog_read(process.store, q.slot, q.generation, &name, list, sizeof list,
                               &length, &version), MQRC_Q_MGR_NOT_AVAILABLE);
    CHECK(is_stopped_by_damage("a definition, its sum"));
}

TEST(a_type_that_was_changed_in_the_region_is_not_found)
{
    struct fixture_queue q;
    struct mqe_found found;
    const struct mqx_definition def = fixture_definition("Q", NULL);
    start();
    CHECK_INT(fixture_define(&process, "Q", NULL, &q), 0);
    mqx_object(region_of(), q.slot)->type = 99;
    CHECK_INT(mqx_catalog_find(process.store, def.name.name_space, def.name.name, 0, &found),
              MQRC_Q_MGR_NOT_AVAILABLE);
    CHECK(is_stopped_by_damage("the name of an object"));
}

TEST(the_fixture_is_cleared_away)
{
    stop();
    CHECK(process.store->files == NULL);
}

TEST_MAIN()
