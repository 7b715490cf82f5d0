/* Claims of advance.c: the clock of queues goes on by what it is told, and no further. */
#include "fixtures/due_fixture.h"

#define CENTURY_US 3155760000000000ull

TEST(an_advanced_clock_releases_what_is_due_and_nothing_else)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT(q, .text = "a", .delay_us = LONG), 0);
    CHECK_INT(PUT(q, .text = "b", .delay_us = 3 * LONG), 0);
    CHECK_INT(mqe_advance(engine.manager, LONG / 2), 0);
    CHECK_INT(object(q)->delayed, 2);
    CHECK_INT(mqe_advance(engine.manager, LONG), 0);
    CHECK_INT(object(q)->delayed, 1); /* released without a search */
    CHECK_INT(mqe_advanced_us(engine.manager), LONG + LONG / 2);
    CHECK_STR(drain(q), "a");
}

TEST(the_clock_is_advanced_by_a_hundred_years_at_most)
{
    engine_begin();
    CHECK_INT(mqe_advance(engine.manager, 0), 0);
    CHECK_INT(mqe_advanced_us(engine.manager), 0);
    CHECK_INT(mqe_advance(engine.manager, CENTURY_US + 1), MQRC_OPTIONS_ERROR);
    CHECK_INT(mqe_advance(engine.manager, CENTURY_US - 5), 0);
    CHECK_INT(mqe_advance(engine.manager, 6), MQRC_OPTIONS_ERROR);
    CHECK_INT(mqe_advance(engine.manager, UINT64_MAX), MQRC_OPTIONS_ERROR);
    CHECK_INT(mqe_advance(engine.manager, 5), 0);
    CHECK_INT(mqe_advanced_us(engine.manager), CENTURY_US);
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
