/* Claims of status.c: counts, lists, and the age of a queue. */
#include "fixtures/engine_fixture.h"

TEST(queue_status_tells_depth_units_handles_waiters_and_counts)
{
    static struct waiter waiter;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    engine_fill(q, 4);
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
    engine_fill(q, 100);
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

/* ---- the age of a queue ---- */

/* A message whose putter gives it its time: 0 is no time. */
static int put_at(struct queue q, uint64_t time_us, int priority, int persistent, mqe_unit *unit)
{
    const struct mqe_destination to = mqe_direct(q.slot, q.generation);
    struct ps_descriptor d = {.priority = priority, .persistence = (uint8_t)persistent,
                              .md_version = 2, .put_time_us = time_us};
    return mqe_put(engine.manager, unit, &to, &d, NULL, "x", 1, -1, MQE_PUT_KEEP_TIME);
}

static uint64_t oldest(struct queue q)
{
    uint64_t us = 1;
    CHECK_INT(mqe_queue_oldest(engine.manager, q.slot, q.generation, &us), 0);
    return us;
}

TEST(the_oldest_message_is_at_the_head_of_one_of_the_priorities)
{
    engine_begin();
    for (int persistent = 0; persistent < 2; persistent++) {
        struct queue q = QUEUE(persistent ? "P" : "N", 0);
        CHECK_INT(oldest(q), 0);
        CHECK_INT(put_at(q, 500, 4, persistent, NULL), 0);
        CHECK_INT(oldest(q), 500);
        CHECK_INT(put_at(q, 400, 0, persistent, NULL), 0);
        CHECK_INT(put_at(q, 600, 9, persistent, NULL), 0);
        CHECK_INT(put_at(q, 700, 0, persistent, NULL), 0);
        CHECK_INT(oldest(q), 400);
        CHECK_INT(put_at(q, 300, 8, persistent, NULL), 0);
        CHECK_INT(oldest(q), 300);
        if (persistent) { /* now the descriptors are in the journal */
            engine_kill_and_restart();
            q = engine_find("P");
            CHECK_INT(oldest(q), 300);
        }
        TAKE(q);
        CHECK_INT(oldest(q), 300);
        TAKE(q);
        CHECK_INT(oldest(q), 400);
        CHECK_STR(drain(q), "x x x");
        CHECK_INT(oldest(q), 0);
        CHECK_INT(oldest(q), 0); /* each context went back */
    }
}

TEST(messages_of_units_and_locked_ones_are_not_the_oldest)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    CHECK_INT(put_at(q, 100, 5, 0, NULL), 0);
    CHECK_INT(put_at(q, 200, 5, 1, NULL), 0);
    CHECK_INT(put_at(q, 50, 7, 1, unit), 0);
    CHECK_INT(oldest(q), 100);
    CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_FIRST | MQE_GET_LOCK), "x");
    CHECK_INT(oldest(q), 200);
    CHECK_STR(TAKE(q, .flags = MQE_GET_UNLOCK), "");
    CHECK_STR(TAKE(q, .unit = unit), "x");
    CHECK_INT(oldest(q), 200);
    CHECK_INT(mqe_commit(unit), 0);
    CHECK_INT(oldest(q), 50);
}

TEST(a_message_without_a_time_lets_the_next_one_of_its_priority_tell)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(put_at(q, 0, 5, i == 1, NULL), 0);
    }
    CHECK_INT(oldest(q), 0);
    CHECK_INT(put_at(q, 900, 5, 0, NULL), 0);
    CHECK_INT(oldest(q), 900);
    CHECK_INT(put_at(q, 800, 3, 0, NULL), 0);
    CHECK_INT(oldest(q), 800);
    for (int i = 0; i < 64; i++) { /* more are not examined */
        CHECK_INT(put_at(q, 0, 9, 0, NULL), 0);
    }
    CHECK_INT(oldest(q), 0);
}

TEST(a_queue_that_is_gone_has_no_oldest_message)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    uint64_t us;
    CHECK_INT(put_at(q, 100, 5, 0, NULL), 0);
    CHECK_INT(mqe_queue_oldest(engine.manager, q.slot, q.generation + 1, &us), 2052);
    CHECK_INT(mqe_queue_oldest(engine.manager, 0, 0, &us), 2052);
    CHECK_INT(mqe_queue_oldest(engine.manager, UINT32_MAX, 0, &us), 2052);
    CHECK_INT(oldest(q), 100);
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
