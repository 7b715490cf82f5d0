/* Claims of delayed.h: a delayed message stands at its position and is found when it is due,
 * whatever happens between. */
#include "fixtures/due_fixture.h"

TEST(a_delayed_message_is_found_by_no_get_until_it_is_due_and_then_at_its_position)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT(q, .text = "a", .delay_us = LONG, .msg = 1, .correl = 9), 0);
    CHECK_INT(PUT(q, .text = "b", .persistent = 1, .delay_us = LONG), 0);
    CHECK_INT(PUT(q, .text = "c"), 0);
    CHECK_INT(depth(q), 3);
    CHECK_INT(engine_status(q).delayed, 2);
    CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_FIRST), "c");
    CHECK_STR(TAKE(q, .msg = 1), "(2033)");
    CHECK_STR(TAKE(q, .correl = 9), "(2033)");
    CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_FIRST, .match = MQE_MATCH_DELAYED), "a");
    CHECK_STR(TAKE(q, .flags = MQE_GET_UNDER_CURSOR), "(2034)");
    CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_NEXT, .match = MQE_MATCH_DELAYED), "b");
    CHECK_STR(TAKE(q, .match = MQE_MATCH_DELAYED), "(2247)");
    CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_FIRST | MQE_GET_LOCK, .match = MQE_MATCH_DELAYED),
              "(2247)");
    CHECK_INT(mqe_check(engine.manager), 0);
    pass(LONG);
    CHECK_INT(engine_status(q).delayed, 0);
    CHECK_STR(TAKE(q, .correl = 9), "a");
    CHECK_STR(drain(q), "b c");
    CHECK_INT(mqe_check(engine.manager), 0);
}

TEST(a_message_of_a_unit_is_visible_when_it_is_committed_and_due_whichever_comes_last)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    CHECK_INT(PUT(q, .text = "due first", .persistent = 1, .delay_us = LONG, .unit = unit), 0);
    pass(2 * LONG);
    CHECK_STR(TAKE(q), "(2033)");
    CHECK_INT(mqe_commit(unit), 0);
    CHECK_STR(TAKE(q), "due first");
    CHECK_INT(PUT(q, .text = "committed first", .persistent = 1, .delay_us = 4 * LONG,
                  .unit = unit), 0);
    CHECK_INT(mqe_commit(unit), 0);
    CHECK_INT(engine_status(q).delayed, 1);
    CHECK_STR(TAKE(q), "(2033)");
    pass(4 * LONG);
    CHECK_STR(TAKE(q), "committed first");
    CHECK_INT(PUT(q, .text = "backed out", .persistent = 1, .delay_us = LONG, .unit = unit), 0);
    CHECK_INT(mqe_backout(unit), 0);
    CHECK_INT(depth(q), 0);
    CHECK_INT(mqe_check(engine.manager), 0);
}

TEST(a_message_that_would_expire_before_it_is_due_or_is_due_after_9999_is_refused)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT(q, .text = "x", .delay_us = SECOND, .expiry = 5), MQRC_EXPIRY_ERROR);
    CHECK_INT(PUT(q, .text = "x", .delay_us = PS_DUE_MAX), MQRC_MD_ERROR);
    CHECK_INT(depth(q), 0);
    CHECK_INT(PUT(q, .text = "x", .delay_us = SECOND, .expiry = 15), 0);
    CHECK_INT(depth(q), 1);
}

TEST(due_times_survive_a_kill_and_an_orderly_end_with_a_checkpoint_between)
{
    engine_begin();
    struct queue q = QUEUE("Q", NPMCLASS, 10);
    mqe_unit *unit = engine_unit();
    CHECK_INT(PUT(q, .text = "full", .persistent = 1, .delay_us = LONG), 0);
    for (int i = 0; i < 3; i++) { /* the third one is short */
        CHECK_INT(PUT(q, .text = "unit", .persistent = 1, .delay_us = LONG, .unit = unit), 0);
    }
    CHECK_INT(mqe_commit(unit), 0);
    engine_kill_and_restart();
    q = engine_find("Q");
    CHECK_INT(engine_status(q).delayed, 4);
    CHECK_INT(mqe_check(engine.manager), 0);
    CHECK_INT(mqe_checkpoint(engine.manager), 0);
    engine_kill_and_restart();
    q = engine_find("Q");
    CHECK_INT(engine_status(q).delayed, 4);
    CHECK_INT(PUT(q, .text = "image", .delay_us = LONG), 0);
    engine_restart();
    q = engine_find("Q");
    CHECK_INT(engine_status(q).delayed, 5);
    CHECK_STR(TAKE(q), "(2033)");
    CHECK_INT(mqe_check(engine.manager), 0);
    pass(LONG);
    CHECK_STR(drain(q), "full unit unit unit image");
}

TEST(what_was_backed_out_with_a_delay_waits_blocks_nobody_and_keeps_time_and_count_over_a_kill)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    CHECK_INT(PUT(q, .text = "bad", .persistent = 1), 0);
    CHECK_INT(PUT(q, .text = "good", .persistent = 1), 0);
    CHECK_STR(TAKE(q, .unit = unit), "bad");
    CHECK_INT(PUT(q, .text = "never", .persistent = 1, .unit = unit), 0);
    CHECK_INT(mqe_backout_later(unit, LONG), 0);
    CHECK_INT(engine_status(q).delayed, 1);
    CHECK_STR(TAKE(q), "good");
    engine_kill_and_restart();
    q = engine_find("Q");
    CHECK_INT(engine_status(q).delayed, 1);
    CHECK_STR(TAKE(q), "(2033)");
    pass(LONG);
    unit = engine_unit();
    CHECK_STR(TAKE(q, .unit = unit), "bad");
    CHECK_INT(got.backout_count, 1);
    CHECK_INT(mqe_backout_later(unit, 3 * LONG), 0);
    CHECK_INT(mqe_checkpoint(engine.manager), 0);
    engine_kill_and_restart();
    q = engine_find("Q");
    pass(2 * LONG);
    CHECK_STR(TAKE(q), "(2033)");
    pass(LONG);
    CHECK_STR(TAKE(q), "bad");
    CHECK_INT(got.backout_count, 2);
}

TEST(a_step_of_the_wall_clock_changes_nothing_within_a_run)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT(q, .text = "a", .delay_us = LONG), 0);
    const uint64_t first = object(q)->next_due_us;
    CHECK(first > mqx_due_now(engine_region()) + LONG - SECOND);
    CHECK(first <= mqx_due_now(engine_region()) + LONG);
    pass(LONG / 2); /* as if the wall clock had been set back by that: due times are ahead of it */
    CHECK_INT(PUT(q, .text = "b", .delay_us = LONG), 0);
    CHECK_INT(object(q)->next_due_us, first);
    pass(LONG / 2);
    CHECK_STR(drain(q), "a");
    pass(LONG / 2);
    CHECK_STR(drain(q), "b");
}

TEST(a_delayed_message_whose_expiry_passes_while_it_waits_for_a_retry_is_discarded)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    CHECK_INT(PUT(q, .text = "a", .expiry = 1), 0);
    CHECK_STR(TAKE(q, .unit = unit), "a");
    CHECK_INT(mqe_backout_later(unit, LONG), 0);
    CHECK_INT(depth(q), 1);
    mqx_clock_sleep_us(500000);
    CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_FIRST, .match = MQE_MATCH_DELAYED), "(2033)");
    CHECK_INT(depth(q), 0);
    CHECK_INT(mqe_check(engine.manager), 0);
}

TEST(clearing_and_purging_take_delayed_messages_too)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT(q, .text = "a", .delay_us = LONG), 0);
    CHECK_INT(PUT(q, .text = "b", .delay_us = LONG, .persistent = 1), 0);
    CHECK_INT(engine_close(q.handle), 0);
    CHECK_INT(mqe_delete(engine.manager, q.slot, q.generation, 0), MQRC_Q_NOT_EMPTY);
    CHECK_INT(mqe_clear(engine.manager, q.slot, q.generation), 0);
    q = engine_find("Q");
    CHECK_INT(depth(q), 0);
    CHECK_INT(PUT(q, .text = "a", .delay_us = LONG), 0);
    CHECK_INT(PUT(q, .text = "b", .delay_us = LONG, .persistent = 1), 0);
    CHECK_INT(engine_close(q.handle), 0);
    CHECK_INT(mqe_delete(engine.manager, q.slot, q.generation, 1), 0);
    CHECK_INT(mqe_check(engine.manager), 0);
}

TEST_MAIN()
