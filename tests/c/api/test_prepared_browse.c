/* Claims of prepared_browse.c; test_prepared has those about restarts, test_deleted_while_used
 * about ends. */
#include "fixtures/prepared_fixture.h"

TEST(a_browse_may_begin_anywhere_and_ends_with_an_empty_batch)
{
    struct mqe_prepared_cursor cursor = {.index = 0};
    engine_begin();
    struct queue q = QUEUE("Q", 0), other = QUEUE("OTHER", 0);
    mqe_unit *unit = engine_unit();
    CHECK_INT(PUT(q, .text = "got", .persistent = 1), 0);
    CHECK_STR(TAKE(q, .unit = unit), "got");
    CHECK_INT(PUT(q, .text = "a", .persistent = 1, .unit = unit), 0);
    CHECK_INT(PUT(other, .text = "b", .unit = unit), 0);
    CHECK_INT(PUT(q, .text = "c", .persistent = 1, .unit = unit), 0);
    CHECK_INT(prepare(unit, 1), 0);
    CHECK_STR(rows(1), "got +a +b +c");
    CHECK_STR(rows_from(1, 2, 1), "+b +c");
    CHECK_STR(rows_from(1, 4, 1), "");
    CHECK_STR(rows_from(1, 400, 1), "");
    CHECK_INT(browse_some(2, &cursor, 1, BODIES), MQRC_UOW_NOT_AVAILABLE);
    CHECK_INT(commit(1), 0);
}

TEST(a_body_that_does_not_fit_is_2080_and_the_cursor_stays_before_it)
{
    struct mqe_prepared_cursor cursor = {.index = 0};
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    CHECK_INT(PUT(q, .text = "0123456789", .persistent = 1, .unit = unit), 0);
    CHECK_INT(prepare(unit, 1), 0);
    CHECK_INT(browse_some(1, &cursor, 4, 9), MQRC_TRUNCATED_MSG_FAILED);
    CHECK_INT(batch.needed, 10);
    CHECK_INT(cursor.index, 0);
    CHECK_INT(browse_some(1, &cursor, 4, 10), 0);
    CHECK_INT(batch.count, 1);
    CHECK_INT(cursor.index, 1);
    CHECK_INT(commit(1), 0);
}

TEST(a_long_message_is_pinned_only_while_it_is_copied)
{
    static char text[20000];
    struct mqe_prepared_cursor cursor = {.index = 0};
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    memset(text, 'x', sizeof text - 1);
    CHECK_INT(PUT(q, .text = text, .unit = unit), 0);
    CHECK_INT(prepare(unit, 1), 0);
    CHECK_INT(browse_some(1, &cursor, 4, BODIES), 0);
    CHECK_INT(batch.count, 1);
    CHECK_INT(bodies[sizeof text - 2], 'x');
    const struct mqx_context *prepared = mqx_context(engine_region(), 1);
    for (uint32_t slot = 1; prepared != NULL && prepared->state != MQX_CTX_PREPARED; slot++) {
        prepared = mqx_context(engine_region(), slot);
    }
    CHECK(prepared != NULL);
    CHECK_INT(mqx_message(engine_region(), prepared->head)->pins, 0);
    CHECK_INT(commit(1), 0);
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
