/* Claims of clear.c: every message goes for good, or none is touched. */
#include "fixtures/engine_fixture.h"

TEST(clear_takes_every_message_for_good)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0), other = QUEUE("OTHER", 0);
    engine_fill(q, 3000);
    engine_fill(other, 10);
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
    engine_fill(q, 10);
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

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
