/* Claims of get.c: which message a get is about, what becomes of it, browsing, truncation, expiry.
 * */
#include "fixtures/engine_fixture.h"

TEST(delivery_is_by_priority_and_within_it_in_put_order_whatever_the_persistence)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    for (int i = 0; i < 6; i++) {
        const char text[2] = {(char)('a' + i), '\0'};
        CHECK_INT(PUT(q, .text = text, .priority = i % 2 * 5, .persistent = i % 3 == 0), 0);
    }
    CHECK_STR(peruse(q), "b d f a c e");
    CHECK_STR(drain(q), "b d f a c e");
    CHECK_STR(TAKE(q), "(2033)");
}

TEST(without_the_truncation_option_a_long_message_stays_where_it_was_and_tells_its_length)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    for (int persistent = 0; persistent < 2; persistent++) {
        CHECK_INT(PUT(q, .text = "abcdefgh", .persistent = persistent), 0);
        CHECK_INT(PUT(q, .text = "next", .persistent = persistent), 0);
        CHECK_STR(TAKE(q, .capacity = 3), "abc(2080)");
        CHECK_INT(got.length, 8);
        CHECK_STR(TAKE(q, .capacity = NONE), "(2080)");
        CHECK_INT(got.length, 8);
        CHECK_STR(TAKE(q, .capacity = 7, .unit = unit), "abcdefg(2080)");
        CHECK_INT(mqe_unit_count(unit), 0);
        CHECK_INT(depth(q), 2);
        CHECK_STR(TAKE(q, .capacity = 8), "abcdefgh");
        CHECK_INT(got.backout_count, 0);
        CHECK_STR(drain(q), "next");
    }
}

TEST(with_the_truncation_option_the_message_is_taken_with_a_warning)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    for (int persistent = 0; persistent < 2; persistent++) {
        for (int n = 0; n < 3; n++) {
            CHECK_INT(PUT(q, .text = "abcdefgh", .persistent = persistent), 0);
        }
        CHECK_STR(TAKE(q, .capacity = 3, .flags = MQE_GET_ACCEPT_TRUNCATED), "abc(2079)");
        CHECK_INT(got.length, 8);
        CHECK_STR(TAKE(q, .capacity = NONE, .flags = MQE_GET_ACCEPT_TRUNCATED), "(2079)");
        CHECK_STR(TAKE(q, .capacity = 5, .flags = MQE_GET_ACCEPT_TRUNCATED, .unit = unit),
                  "abcde(2079)");
        CHECK_INT(mqe_unit_count(unit), 1);
        CHECK_INT(mqe_backout(unit), 0);
        CHECK_STR(TAKE(q), "abcdefgh");
        CHECK_INT(got.backout_count, 1);
        CHECK_INT(depth(q), 0);
    }
}

TEST(a_long_body_is_truncated_by_the_same_rules)
{
    static char body[200000], small[70000];
    memset(body, 'x', sizeof body);
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    for (int persistent = 0; persistent < 2; persistent++) {
        struct mqe_get get = {.buffer = small, .capacity = sizeof small};
        CHECK_INT(PUT(q, .body = body, .length = sizeof body, .persistent = persistent), 0);
        CHECK_INT(mqe_get(engine.manager, NULL, q.handle, &get), 2080);
        CHECK_INT(get.length, sizeof body);
        CHECK_MEM(small, body, sizeof small);
        get.flags = MQE_GET_BROWSE_FIRST;
        CHECK_INT(mqe_get(engine.manager, NULL, q.handle, &get), 2080);
        get.flags = MQE_GET_BROWSE_FIRST | MQE_GET_ACCEPT_TRUNCATED;
        CHECK_INT(mqe_get(engine.manager, NULL, q.handle, &get), 2079);
        get.flags = MQE_GET_ACCEPT_TRUNCATED;
        CHECK_INT(mqe_get(engine.manager, NULL, q.handle, &get), 2079);
        CHECK_INT(depth(q), 0);
    }
}

TEST(a_browse_goes_first_to_last_and_takes_nothing)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_FIRST), "(2033)");
    CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_UNDER_CURSOR), "(2034)");
    CHECK_INT(PUT(q, .text = "a"), 0);
    CHECK_INT(PUT(q, .text = "b", .persistent = 1), 0);
    CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_NEXT), "a");
    CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_UNDER_CURSOR), "a");
    CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_NEXT), "b");
    CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_NEXT), "(2033)");
    CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_UNDER_CURSOR), "b");
    CHECK_INT(PUT(q, .text = "c"), 0);
    CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_NEXT), "c");
    CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_FIRST), "a");
    CHECK_INT(depth(q), 3);
}

TEST(the_message_under_the_cursor_can_be_taken_once)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    for (int i = 0; i < 4; i++) {
        const char text[2] = {(char)('a' + i), '\0'};
        CHECK_INT(PUT(q, .text = text, .persistent = i % 2), 0);
    }
    TAKE(q, .flags = MQE_GET_BROWSE_FIRST);
    CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_NEXT), "b");
    CHECK_STR(TAKE(q, .flags = MQE_GET_UNDER_CURSOR), "b");
    CHECK_STR(TAKE(q, .flags = MQE_GET_UNDER_CURSOR), "(2034)");
    CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_UNDER_CURSOR), "(2034)");
    CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_NEXT), "c");
    CHECK_STR(TAKE(q, .flags = MQE_GET_UNDER_CURSOR, .unit = unit), "c");
    CHECK_STR(TAKE(q, .flags = MQE_GET_UNDER_CURSOR), "(2034)");
    CHECK_INT(mqe_backout(unit), 0);
    CHECK_STR(TAKE(q, .flags = MQE_GET_UNDER_CURSOR), "c");
    CHECK_INT(got.backout_count, 1);
    CHECK_STR(drain(q), "a d");
}

TEST(a_browse_misses_what_arrives_at_a_higher_priority_until_it_begins_again)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT(q, .text = "low", .priority = 2), 0);
    CHECK_INT(PUT(q, .text = "low2", .priority = 2), 0);
    CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_FIRST), "low");
    CHECK_INT(PUT(q, .text = "high", .priority = 8), 0);
    CHECK_INT(PUT(q, .text = "lower", .priority = 1), 0);
    CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_NEXT), "low2");
    CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_NEXT), "lower");
    CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_NEXT), "(2033)");
    CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_FIRST), "high");
}

TEST(a_locked_message_is_hidden_from_everybody_else_until_it_is_unlocked)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_queue *other = engine_open(q, 2 | MQE_BROWSE);
    CHECK_STR(TAKE(q, .flags = MQE_GET_UNLOCK), "(2209)");
    CHECK_INT(PUT(q, .text = "a"), 0);
    CHECK_INT(PUT(q, .text = "b"), 0);
    CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_FIRST | MQE_GET_LOCK), "a");
    CHECK_STR(TAKE_BY(other, .flags = MQE_GET_BROWSE_FIRST), "b");
    CHECK_STR(TAKE_BY(other, .flags = MQE_GET_UNLOCK), "(2209)");
    CHECK_INT(depth(q), 2);
    CHECK_STR(TAKE(q, .flags = MQE_GET_UNLOCK), "");
    CHECK_STR(TAKE(q, .flags = MQE_GET_UNLOCK), "(2209)");
    CHECK_STR(TAKE_BY(other, .flags = MQE_GET_BROWSE_FIRST), "a");
    CHECK_STR(drain(q), "a b");
}

TEST(a_locked_message_can_be_taken_under_the_cursor_by_its_own_handle_only)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_queue *other = engine_open(q, 2 | MQE_BROWSE);
    mqe_unit *unit = engine_unit();
    CHECK_INT(PUT(q, .text = "a"), 0);
    CHECK_INT(PUT(q, .text = "b", .persistent = 1), 0);
    CHECK_STR(TAKE_BY(other, .flags = MQE_GET_BROWSE_FIRST), "a");
    CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_FIRST | MQE_GET_LOCK), "a");
    CHECK_STR(TAKE_BY(other, .flags = MQE_GET_UNDER_CURSOR), "(2034)");
    CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_UNDER_CURSOR), "a");
    CHECK_STR(TAKE(q, .flags = MQE_GET_UNDER_CURSOR), "a");
    CHECK_STR(TAKE(q, .flags = MQE_GET_UNLOCK), "(2209)");
    CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_FIRST | MQE_GET_LOCK), "b");
    CHECK_STR(TAKE(q, .flags = MQE_GET_UNDER_CURSOR, .unit = unit), "b");
    CHECK_INT(mqe_backout(unit), 0);
    CHECK_STR(TAKE_BY(other), "b");
}

TEST(a_handle_has_one_lock_which_ends_at_its_next_browse_and_at_its_close)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_queue *other = engine_open(q, 2 | MQE_BROWSE);
    CHECK_INT(PUT(q, .text = "a"), 0);
    CHECK_INT(PUT(q, .text = "b"), 0);
    CHECK_STR(TAKE_BY(other, .flags = MQE_GET_BROWSE_FIRST | MQE_GET_LOCK), "a");
    CHECK_STR(TAKE_BY(other, .flags = MQE_GET_BROWSE_NEXT | MQE_GET_LOCK), "b");
    CHECK_STR(peruse(q), "a");
    CHECK_INT(engine_close(other), 0);
    CHECK_STR(drain(q), "a b");
}

TEST(a_handle_does_only_what_it_was_opened_for)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_queue *input = engine_open(q, 2), *browse = engine_open(q, MQE_BROWSE);
    mqe_queue *output = engine_open(q, MQE_OUTPUT);
    CHECK_INT(PUT(q, .text = "a"), 0);
    CHECK_STR(TAKE_BY(browse), "(2037)");
    CHECK_STR(TAKE_BY(output), "(2037)");
    CHECK_STR(TAKE_BY(input, .flags = MQE_GET_BROWSE_FIRST), "(2036)");
    CHECK_STR(TAKE_BY(input, .flags = MQE_GET_UNDER_CURSOR), "(2036)");
    CHECK_STR(TAKE_BY(output, .flags = MQE_GET_UNLOCK), "(2036)");
    CHECK_STR(TAKE_BY(browse, .flags = MQE_GET_BROWSE_FIRST), "a");
    CHECK_STR(TAKE_BY(browse, .flags = MQE_GET_UNDER_CURSOR), "(2037)");
    CHECK_STR(TAKE_BY(input), "a");
}

TEST(gets_are_refused_while_disabled_and_work_again_afterwards)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT(q, .text = "a"), 0);
    CHECK_INT(ALTER(q, "Q", GET_DISABLED, 1), 0);
    CHECK_STR(TAKE(q), "(2016)");
    CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_FIRST), "(2016)");
    CHECK_INT(PUT(q, .text = "b"), 0);
    CHECK_INT(ALTER(q, "Q", GET_DISABLED, 0), 0);
    CHECK_STR(drain(q), "a b");
}

TEST(only_persistent_messages_join_the_unit_when_asked_so)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    CHECK_INT(PUT(q, .text = "np"), 0);
    CHECK_INT(PUT(q, .text = "p", .persistent = 1), 0);
    CHECK_STR(TAKE(q, .unit = unit, .flags = MQE_GET_IF_PERSISTENT), "np");
    CHECK_STR(TAKE(q, .unit = unit, .flags = MQE_GET_IF_PERSISTENT), "p");
    CHECK_INT(mqe_unit_count(unit), 1);
    CHECK_INT(mqe_backout(unit), 0);
    CHECK_STR(drain(q), "p");
}

TEST(an_expired_message_is_never_returned_and_counts_until_a_get_runs_over_it)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    for (int persistent = 0; persistent < 2; persistent++) {
        CHECK_INT(PUT(q, .text = "old", .expiry = 1, .persistent = persistent), 0);
        CHECK_INT(PUT(q, .text = "stays", .expiry = 6000, .persistent = persistent), 0);
        CHECK_INT(PUT(q, .text = "old too", .expiry = 2, .persistent = persistent), 0);
        sleep_ms(350);
        CHECK_INT(depth(q), 3);
        CHECK_STR(TAKE(q), "stays");
        CHECK(got.expiry > 5000 && got.expiry <= 6000);
        CHECK_STR(TAKE(q), "(2033)");
        CHECK_INT(depth(q), 0);
        CHECK_INT(mqx_object(engine_region(), q.slot)->expiring, 0);
    }
}

TEST(a_browse_does_not_show_expired_messages_nor_can_the_one_under_the_cursor_be_taken)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT(q, .text = "short", .expiry = 2), 0);
    CHECK_INT(PUT(q, .text = "long"), 0);
    CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_FIRST), "short");
    CHECK(got.expiry >= 1 && got.expiry <= 2);
    sleep_ms(350);
    CHECK_STR(TAKE(q, .flags = MQE_GET_UNDER_CURSOR), "(2034)");
    CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_FIRST), "long");
    CHECK_INT(got.expiry, -1);
    CHECK_STR(peruse(q), "long");
}

TEST(an_expiry_survives_restarts_and_a_get_by_id_does_not_find_the_expired)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT(q, .text = "old", .expiry = 2, .persistent = 1, .correl = 5), 0);
    CHECK_INT(PUT(q, .text = "new", .persistent = 1, .correl = 5), 0);
    engine_kill_and_restart();
    q = engine_find("Q");
    sleep_ms(350);
    CHECK_INT(depth(q), 2);
    CHECK_STR(TAKE(q, .correl = 5), "new");
    CHECK_STR(TAKE(q, .correl = 5), "(2033)");
    CHECK_INT(depth(q), 0);
}

TEST(a_get_in_a_unit_at_its_limit_is_refused_and_a_browse_is_not)
{
    struct mqe_settings settings = engine_settings();
    settings.max_uncommitted = 2;
    engine_begin_with(&settings);
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    for (int i = 0; i < 3; i++) {
        CHECK_INT(PUT(q, .text = i == 0 ? "a" : i == 1 ? "b" : "c"), 0);
    }
    CHECK_STR(TAKE(q, .unit = unit), "a");
    CHECK_STR(TAKE(q, .unit = unit), "b");
    CHECK_STR(TAKE(q, .unit = unit), "(2024)");
    CHECK_INT(PUT(q, .text = "d", .unit = unit), MQRC_SYNCPOINT_LIMIT_REACHED);
    CHECK_STR(TAKE(q, .unit = unit, .flags = MQE_GET_BROWSE_FIRST), "c");
    CHECK_STR(TAKE(q), "c");
    CHECK_INT(mqe_commit(unit), 0);
    CHECK_INT(depth(q), 0);
}

TEST(a_message_is_got_by_its_arrival_number_alone_or_with_its_ids)
{
    enum { MANY = 300 };
    static uint64_t numbers[MANY];
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    for (uint64_t i = 0; i < MANY; i++) {
        char text[16];
        snprintf(text, sizeof text, "m%d", (int)i);
        CHECK_INT(PUT(q, .text = text, .priority = (int32_t)(i % 3), .msg = i + 1,
                      .persistent = i % 2 == 0), 0);
    }
    while (TAKE(q, .flags = MQE_GET_BROWSE_NEXT), got.status == 0) {
        numbers[got.msg - 1] = got.number;
    }
    CHECK_STR(TAKE(q, .number = numbers[7], .flags = MQE_GET_BROWSE_FIRST), "m7");
    CHECK_STR(TAKE(q, .number = numbers[299]), "m299");
    CHECK_STR(TAKE(q, .number = numbers[299]), "(2033)");
    CHECK_STR(TAKE(q, .number = numbers[150], .msg = 150), "(2033)");
    CHECK_STR(TAKE(q, .number = numbers[150], .msg = 151), "m150");
    CHECK_INT(got.number, numbers[150]);
}

TEST(a_getter_that_waits_for_one_number_does_not_keep_a_message_from_another_getter)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    struct waiter picky = {0}, other = {0};
    WAITER(&picky, q, .number = UINT64_MAX, .wait_us = 300000);
    CHECK(await_waiters(q, 1));
    WAITER(&other, q, 0);
    CHECK(await_waiters(q, 2));
    const uint64_t bound = woken_by_bound();
    CHECK_INT(PUT(q, .text = "x"), 0);
    CHECK_STR(waiter_end(&other), "x");
    CHECK_STR(waiter_end(&picky), "(2033)");
    CHECK_INT(woken_by_bound(), bound);
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
