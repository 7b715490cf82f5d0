/* Claims of define.c: the life of definitions, and what an alter changes at once. */
#include "fixtures/engine_fixture.h"

TEST(objects_are_defined_found_listed_read_and_deleted)
{
    uint32_t slot = 0, generation = 0, length = 0, seen = 0;
    uint64_t version = 0;
    struct mqe_found found;
    unsigned char attrs[256];
    struct ps_object_name name;
    engine_begin();
    struct queue a = QUEUE("A", MAXDEPTH, 77), b = QUEUE("B", 0);
    while (mqe_next_object(engine.manager, &slot, &generation) == 0) {
        CHECK_INT(mqe_read_object(engine.manager, slot, generation, &name, attrs, sizeof attrs,
                                  &length, &version), 0);
        CHECK(name.name[0] == (slot == a.slot ? 'A' : 'B'));
        seen++;
    }
    CHECK_INT(seen, 2);
    CHECK_INT(mqe_read_object(engine.manager, a.slot, a.generation, &name, attrs, sizeof attrs,
                              &length, &version), 0);
    const struct attributes given = engine_attributes((const int[]){MAXDEPTH, 77, 0});
    CHECK_INT(length, given.length);
    CHECK_MEM(attrs, given.bytes, length);
    CHECK_INT(engine_close(b.handle), 0);
    CHECK_INT(mqe_delete(engine.manager, b.slot, b.generation, 0), 0);
    name = engine_name("B");
    CHECK_INT(mqe_find(engine.manager, 1, name.name, 0, &found), 2085);
    CHECK(mqe_delete(engine.manager, b.slot, b.generation, 0) != 0);
}

TEST(a_queue_that_is_open_or_holds_messages_is_not_deleted)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    CHECK_INT(mqe_delete(engine.manager, q.slot, q.generation, 0), MQRC_OBJECT_IN_USE);
    CHECK_INT(PUT(q, .text = "x", .unit = unit), 0);
    CHECK_INT(engine_close(q.handle), 0);
    CHECK_INT(mqe_delete(engine.manager, q.slot, q.generation, 0), MQRC_Q_NOT_EMPTY);
    CHECK(mqe_delete(engine.manager, q.slot, q.generation, 1) != 0);
    CHECK_INT(mqe_commit(unit), 0);
    CHECK_INT(mqe_delete(engine.manager, q.slot, q.generation, 0), MQRC_Q_NOT_EMPTY);
    CHECK_INT(mqe_delete(engine.manager, q.slot, q.generation, 1), 0);
}

TEST(an_alter_acts_on_the_next_call_through_handles_that_are_open)
{
    engine_begin();
    struct queue q = QUEUE("Q", MAXDEPTH, 1);
    CHECK_INT(PUT(q, .text = "a"), 0);
    CHECK_INT(PUT(q, .text = "b"), MQRC_Q_FULL);
    CHECK_INT(ALTER(q, "Q", MAXDEPTH, 2, MAXMSGL, 3), 0);
    CHECK_INT(PUT(q, .text = "b"), 0);
    CHECK_INT(PUT(q, .text = "long"), MQRC_MSG_TOO_BIG_FOR_Q);
    CHECK_INT(ALTER(q, "Q", MAXDEPTH, 1), 0);
    CHECK_INT(depth(q), 2); /* what is there stays */
    CHECK_STR(drain(q), "a b");
}

TEST(the_control_plane_is_refused_in_a_stopped_queue_manager_but_for_its_status)
{
    struct mqe_manager_status status;
    struct mqe_queue_status queue_status;
    const struct ps_object_name name = engine_name("NEW");
    uint32_t slot = 0, generation = 0, count = 0;
    struct mqe_found found;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqx_region_stop(engine_region(), MQX_STOP_BROKEN);
    CHECK_INT(mqe_define(engine.manager, &name, NULL, 0, &slot, &generation), 2009);
    CHECK_INT(ALTER(q, "Q", MAXDEPTH, 1), 2009);
    CHECK_INT(mqe_delete(engine.manager, q.slot, q.generation, 1), 2009);
    CHECK_INT(mqe_clear(engine.manager, q.slot, q.generation), 2009);
    CHECK_INT(mqe_find(engine.manager, 1, name.name, 0, &found), 2009);
    CHECK_INT(mqe_queue_status(engine.manager, q.slot, q.generation, &queue_status), 2009);
    CHECK_INT(mqe_units(engine.manager, NULL, 0, &count), 2009);
    CHECK_INT(mqe_checkpoint(engine.manager), 2009);
    CHECK_INT(mqe_maintain(engine.manager), 2009);
    CHECK_INT(mqe_check(engine.manager), 2009);
    CHECK_INT(mqe_status(engine.manager, &status), 0);
    CHECK_INT(status.stopped, MQX_STOP_BROKEN);
}

static struct ps_object_name manager_name(void)
{
    struct ps_object_name name = engine_name("QM1");
    name.name_space = MQX_NAMES_MANAGER;
    name.type = 5;
    return name;
}

TEST(attributes_of_the_queue_manager_object_are_in_force_from_define_alter_and_restart_on)
{
    const struct ps_object_name name = manager_name();
    struct attributes attrs = engine_attributes((const int[]){MAXUMSGS, 2, MAXMSGL, 32768, 0});
    static char body[32769];
    uint32_t slot = 0, generation = 0;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    CHECK_INT(mqe_define(engine.manager, &name, attrs.bytes, attrs.length, &slot, &generation), 0);
    for (int round = 0; round < 3; round++) {
        CHECK_INT(PUT(q, .body = body, .length = 32768), 0);
        CHECK_INT(PUT(q, .body = body, .length = 32769), MQRC_MSG_TOO_BIG_FOR_Q_MGR);
        CHECK_INT(PUT(q, .text = "1", .unit = unit), 0);
        CHECK_INT(PUT(q, .text = "2", .unit = unit), 0);
        CHECK_INT(PUT(q, .text = "3", .unit = unit), MQRC_SYNCPOINT_LIMIT_REACHED);
        CHECK_INT(mqe_backout(unit), 0);
        if (round == 0) {
            engine_kill_and_restart();
        } else {
            engine_restart(); /* from a checkpoint */
        }
        q = engine_find("Q");
        unit = engine_unit();
    }
    attrs = engine_attributes((const int[]){MAXUMSGS, 3, 0});
    CHECK_INT(mqe_alter(engine.manager, slot, generation, &name, attrs.bytes, attrs.length, 0, 0),
              0);
    CHECK_INT(PUT(q, .text = "1", .unit = unit), 0);
    CHECK_INT(PUT(q, .text = "2", .unit = unit), 0);
    CHECK_INT(PUT(q, .text = "3", .unit = unit), 0);
    CHECK_INT(PUT(q, .text = "4", .unit = unit), MQRC_SYNCPOINT_LIMIT_REACHED);
}

TEST(values_that_objects_of_other_types_may_not_have_are_refused)
{
    static const struct {
        uint32_t name_space, type;
        int selector, value, reason;
    } cases[] = {
        {MQX_NAMES_MANAGER, 5, MAXUMSGS, 0, 2068},
        {MQX_NAMES_MANAGER, 5, MAXMSGL, 32767, MQRC_MAX_MSG_LENGTH_ERROR},
        {MQX_NAMES_STRUCTURE, 10, CFLEVEL, 0, 2068}, {MQX_NAMES_STRUCTURE, 10, CFLEVEL, 6, 2068},
        {MQX_NAMES_STRUCTURE, 10, RECOVER, 2, 2068}, {MQX_NAMES_QUEUE, 1, DEFTYPE, 5, 2068},
        {MQX_NAMES_QUEUE, 1, INDXTYPE, 6, 2068}, {MQX_NAMES_QUEUE, 1, CFSTRUCT, 1, 2067},
        {103, 1, 9999, 0, 2043}, {MQX_NAMES_QUEUE, 1, CFLEVEL, 99, 0}, {103, 3, DEFPRTY, 99, 0},
    };
    engine_begin();
    for (size_t i = 0; i < MQX_ARRAY_COUNT(cases); i++) {
        struct ps_object_name name = engine_name("X");
        const struct attributes attrs =
            engine_attributes((const int[]){cases[i].selector, cases[i].value, 0});
        uint32_t slot = 0, generation = 0;
        name.name_space = cases[i].name_space;
        name.type = cases[i].type;
        name.name[1] = (char)('A' + i);
        CHECK_INT(mqe_define(engine.manager, &name, attrs.bytes, attrs.length, &slot, &generation),
                  cases[i].reason);
    }
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST(a_state_of_definitions_is_reported_to_one_caller_and_again_when_it_changes)
{
    engine_begin();
    struct queue local = QUEUE("Q", 0);
    struct ps_object_name name = engine_name("CQ");
    uint32_t slot = 0, generation = 0;
    name.name_space = 100 + MQQT_CLUSTER;
    name.type = MQQT_CLUSTER;
    name.instance = 1;
    CHECK_INT(mqe_define(engine.manager, &name, NULL, 0, &slot, &generation), 0);
    CHECK(mqe_report_due(engine.manager, slot, generation, 0));
    CHECK(!mqe_report_due(engine.manager, slot, generation, 0));
    CHECK(mqe_report_due(engine.manager, slot, generation, 5));
    CHECK(!mqe_report_due(engine.manager, slot, generation, 5));
    CHECK(mqe_report_due(engine.manager, slot, generation, 0));
    mqx_object(&engine.manager->store.region, slot)->trigger_us -= 3602; /* more than an hour ago */
    CHECK(mqe_report_due(engine.manager, slot, generation, 0));
    CHECK(!mqe_report_due(engine.manager, slot, generation, 0));
    CHECK(!mqe_report_due(engine.manager, slot, generation + 1, 9));
    CHECK(!mqe_report_due(engine.manager, local.slot, local.generation, 9));
    CHECK(!mqe_report_due(engine.manager, UINT32_MAX, 1, 9));
}

TEST_MAIN()
