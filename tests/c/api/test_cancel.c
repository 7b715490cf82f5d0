/* Claims of cancel.c: one caller wins, and only the message meant goes. */
#include "fixtures/due_fixture.h"

TEST(who_cancels_first_wins_and_only_the_message_meant_goes)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT(q, .text = "a", .msg = 1, .delay_us = LONG), 0);
    CHECK_INT(PUT(q, .text = "b", .msg = 2, .delay_us = LONG, .persistent = 1), 0);
    CHECK_INT(PUT(q, .text = "b2", .msg = 2, .delay_us = LONG, .persistent = 1), 0);
    CHECK_INT(PUT(q, .text = "c", .msg = 3), 0);
    CHECK(!cancel(q, 3)); /* not delayed */
    CHECK(!cancel(q, 4));
    CHECK(cancel(q, 1));
    CHECK(!cancel(q, 1));
    CHECK(cancel(q, 2));
    CHECK(cancel(q, 2));
    CHECK(!cancel(q, 2));
    CHECK_INT(mqe_check(engine.manager), 0);
    engine_restart();
    q = engine_find("Q");
    pass(2 * LONG);
    CHECK_STR(drain(q), "");
}

TEST_MAIN()
