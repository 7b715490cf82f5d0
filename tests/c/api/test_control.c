/* Claims of control.c: objects, clearing, status and lists as the control plane sees them. */
#include "fixtures/engine_fixture.h"

TEST(objects_are_defined_found_listed_read_and_deleted)
{
    uint32_t slot = 0, generation = 0, length = 0, seen = 0;
    uint64_t stamp = 0;
    struct mqe_found found;
    unsigned char attrs[256];
    struct ps_object_name name;
    engine_begin();
    struct queue a = QUEUE("A", MAXDEPTH, 77), b = QUEUE("B", 0);
    while (mqe_next_object(engine.manager, &slot, &generation) == 0) {
        CHECK_INT(mqe_read_object(engine.manager, slot, generation, &name, attrs, sizeof attrs,
                                  &length, &stamp), 0);
        CHECK(name.name[0] == (slot == a.slot ? 'A' : 'B'));
        seen++;
    }
    CHECK_INT(seen, 2);
    CHECK_INT(mqe_read_object(engine.manager, a.slot, a.generation, &name, attrs, sizeof attrs,
                              &length, &stamp), 0);
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

static void fill(struct queue q, int count)
{
    for (int i = 0; i < count; i++) {
        CHECK_INT(PUT(q, .text = "x", .priority = i % 10, .persistent = i % 2), 0);
    }
}

TEST(clear_takes_every_message_for_good)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0), other = QUEUE("OTHER", 0);
    fill(q, 3000);
    fill(other, 10);
    CHECK_INT(engine_close(q.handle), 0);
    CHECK_INT(mqe_clear(engine.manager, q.slot, q.generation), 0);
    CHECK_INT(depth(q), 0);
    CHECK_INT(depth(other), 10);
    CHECK_INT(mqe_clear(engine.manager, q.slot, q.generation), 0);
    CHECK_INT(mqe_check(engine.manager), 0);
    engine_kill_and_restart();
    CHECK_INT(engine.info.messages, 5);
    CHECK_INT(depth(engine_find("Q")), 0);
}

TEST(clear_is_refused_while_the_queue_is_open_or_units_hold_messages)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    fill(q, 10);
    CHECK_INT(mqe_clear(engine.manager, q.slot, q.generation), MQRC_OBJECT_IN_USE);
    CHECK_STR(TAKE(q, .unit = unit), "x");
    CHECK_INT(engine_close(q.handle), 0);
    CHECK_INT(mqe_clear(engine.manager, q.slot, q.generation), MQRC_Q_NOT_EMPTY);
    CHECK_INT(mqe_backout(unit), 0);
    CHECK_INT(PUT(q, .text = "y", .unit = unit), 0);
    CHECK_INT(mqe_clear(engine.manager, q.slot, q.generation), MQRC_Q_NOT_EMPTY);
    CHECK_INT(mqe_commit(unit), 0);
    CHECK_INT(depth(q), 11);
    CHECK_INT(mqe_clear(engine.manager, q.slot, q.generation), 0);
    CHECK_INT(depth(q), 0);
    CHECK(mqe_clear(engine.manager, q.slot, q.generation + 1) != 0);
}

TEST(queue_status_tells_depth_units_handles_waiters_and_counts)
{
    static struct waiter waiter;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    fill(q, 4);
    CHECK_STR(TAKE(q, .unit = unit), "x");
    CHECK_INT(PUT(q, .text = "y", .unit = unit), 0);
    WAITER(&waiter, q, .correl = 9);
    CHECK(await_waiters(q, 1));
    const struct mqe_queue_status s = engine_status(q);
    CHECK(s.depth == 4 && s.uncommitted == 1 && s.got == 1 && s.waiters == 1);
    CHECK(s.open_input == 1 && s.open_output == 1 && s.open_other == 0);
    CHECK(s.put_count == 5 && s.get_count == 0 && s.last_put_us != 0 && s.last_get_us != 0);
    CHECK_INT(PUT(q, .text = "z", .correl = 9), 0);
    (void)waiter_end(&waiter);
    struct mqe_queue_status gone;
    CHECK_INT(mqe_queue_status(engine.manager, q.slot, q.generation + 1, &gone), MQRC_Q_DELETED);
}

TEST(lists_give_as_many_rows_as_fit_and_say_how_many_there_are)
{
    struct mqe_process_status processes[4];
    struct mqe_unit_status units[4];
    struct mqe_handle_status handles[4];
    uint32_t count = 0;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(mqe_processes(engine.manager, processes, 4, &count), 0);
    CHECK_INT(count, 1);
    CHECK(processes[0].keeper == 0 && processes[0].attached_us != 0);
    CHECK_INT(mqe_units(engine.manager, units, 4, &count), 0);
    CHECK_INT(count, 0);
    for (int i = 0; i < 6; i++) {
        CHECK_INT(PUT(q, .text = "x", .unit = engine_unit(), .persistent = 1), 0);
    }
    CHECK_INT(mqe_units(engine.manager, units, 4, &count), 0);
    CHECK_INT(count, 6);
    CHECK(units[3].state == MQX_CTX_ACTIVE && units[3].count == 1 && units[3].unit_id != 0);
    CHECK_INT(mqe_handles(engine.manager, handles, 4, &count), 0);
    CHECK_INT(count, 1);
    CHECK(handles[0].object == q.slot && (handles[0].options & MQE_BROWSE) != 0);
    CHECK_INT(mqe_handles(engine.manager, NULL, 0, &count), 0);
    CHECK_INT(count, 1);
}

TEST(manager_status_follows_the_journal_and_the_region)
{
    struct mqe_manager_status before, after;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(mqe_status(engine.manager, &before), 0);
    fill(q, 100);
    CHECK_INT(mqe_status(engine.manager, &after), 0);
    CHECK(after.flushes > before.flushes && after.durable_lsn > before.durable_lsn);
    CHECK(after.flushed_records >= before.flushed_records + 50);
    CHECK(after.message_entries > before.message_entries && after.body_bytes > before.body_bytes);
    CHECK(after.objects == 1 && after.attached == 1 && after.stopped == 0);
    CHECK(after.journal_bytes <= after.journal_limit && after.segments >= 1);
    CHECK_INT(mqe_checkpoint(engine.manager), 0);
    CHECK_INT(mqe_status(engine.manager, &before), 0);
    CHECK(before.checkpoint_lsn > after.checkpoint_lsn);
    CHECK_INT(mqe_maintain(engine.manager), 0);
}

TEST(the_check_finds_a_count_that_disagrees)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    fill(q, 200);
    TAKE(q, .correl = 99);
    CHECK_INT(mqe_check(engine.manager), 0);
    struct mqx_object *queue = mqx_object(engine_region(), q.slot);
    queue->level[3].present += 1;
    CHECK_INT(mqe_check(engine.manager), MQRC_OBJECT_DAMAGED);
    queue->level[3].present -= 1;
    queue->available_mask ^= 4;
    CHECK_INT(mqe_check(engine.manager), MQRC_OBJECT_DAMAGED);
    queue->available_mask ^= 4;
    CHECK_INT(mqe_check(engine.manager), 0);
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

TEST(the_bed_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
