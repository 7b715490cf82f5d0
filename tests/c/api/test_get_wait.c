/* Claims of get_wait.h: how long a get waits, and what it leaves. test_wait_list has those about
 * wakes. */
#include "fixtures/engine_fixture.h"

#include "base/clock.h"

TEST(a_wait_that_finds_nothing_lasts_as_long_as_it_was_given_and_leaves_no_waiter)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    const uint64_t start_us = mqx_clock_monotonic_us();
    CHECK_STR(TAKE(q, .wait_us = 50000), "(2033)");
    const uint64_t spent_us = mqx_clock_monotonic_us() - start_us;
    CHECK(spent_us >= 50000 && spent_us < 5000000);
    CHECK_INT(engine_status(q).waiters, 0);
}

TEST(a_get_under_the_cursor_does_not_wait_and_says_2034)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    const uint64_t start_us = mqx_clock_monotonic_us();
    CHECK_STR(TAKE(q, .flags = MQE_GET_UNDER_CURSOR, .wait_us = 5000000), "(2034)");
    CHECK(mqx_clock_monotonic_us() - start_us < 2000000);
}

TEST(what_is_left_of_the_time_is_returned_with_the_message)
{
    struct waiter waiter = {0};
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    WAITER(&waiter, q, .wait_us = 60000000);
    CHECK(await_waiters(q, 1));
    CHECK_INT(PUT(q, .text = "x", .persistent = 1), 0);
    CHECK_STR(waiter_end(&waiter), "x");
    CHECK_INT(engine_status(q).waiters, 0);
    CHECK_INT(woken_by_bound(), 0);
}

TEST(a_waiter_sleeps_a_second_at_a_time_and_then_searches_again)
{
    struct mqe_get get = {.flags = MQE_GET_WAIT, .wait_us = 1200000};
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    const uint64_t start_us = mqx_clock_monotonic_us();
    CHECK_INT(mqe_get(engine.manager, NULL, q.handle, &get), MQRC_NO_MSG_AVAILABLE);
    CHECK(mqx_clock_monotonic_us() - start_us >= 1200000);
    CHECK_INT(get.wait_us, 0);
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
