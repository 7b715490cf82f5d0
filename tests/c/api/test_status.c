/* Claims of status.c: which message is the oldest one, wherever its body lies. */
#include "fixtures/engine_fixture.h"

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
    for (int i = 0; i < 64; i++) { /* more are not looked at */
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

TEST(the_bed_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
