/* Claims of unit_handle.h: what a unit that must back out may still do, and what freeing one
 * leaves. */
#include "fixtures/engine_fixture.h"

TEST(a_unit_that_must_back_out_refuses_puts_gets_and_batches_with_the_same_text)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    CHECK_INT(PUT(q, .text = "there"), 0);
    CHECK_INT(PUT(q, .text = "mine", .unit = unit, .persistent = 1), 0);
    CHECK_INT(mqx_unit_check_usable(engine_region(), unit->context), 0);
    struct mqx_context *context = mqx_context(engine_region(), unit->context);
    mqx_store_release(&context->must_back_out, context->first_lsn);
    CHECK_INT(mqx_unit_check_usable(engine_region(), unit->context), MQRC_BACKED_OUT);
    CHECK_INT(PUT(q, .text = "no", .unit = unit), MQRC_BACKED_OUT);
    CHECK_STR(mqe_error_text(), "the unit of work has been backed out; end it");
    CHECK_STR(TAKE(q, .unit = unit), "(2003)");
    CHECK_STR(mqe_error_text(), "the unit of work has been backed out; end it");
    CHECK_INT(mqe_commit(unit), MQRC_BACKED_OUT);
    CHECK_STR(drain(q), "there");
    CHECK_INT(mqe_unit_count(unit), 0);
}

TEST(a_unit_that_is_freed_is_backed_out_and_its_context_used_again)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = NULL, *next = NULL;
    CHECK_INT(mqe_unit_new(engine.manager, &unit), 0);
    const uint32_t context = unit->context;
    CHECK_INT(PUT(q, .text = "x", .unit = unit), 0);
    CHECK_INT(mqe_unit_count(unit), 1);
    mqe_unit_free(unit);
    CHECK_INT(depth(q), 0);
    CHECK_INT(mqe_unit_new(engine.manager, &next), 0);
    CHECK_INT(next->context, context);
    mqe_unit_free(next);
}

TEST(an_autocommit_unit_is_committed_after_success_and_backed_out_after_a_failure)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    for (int failed = 0; failed < 2; failed++) {
        mqe_unit *unit = engine_unit();
        CHECK_INT(PUT(q, .text = "x", .unit = unit), 0);
        mqx_store_release(&mqx_context(engine_region(), unit->context)->autocommit, 1u);
        const int status = failed ? MQRC_Q_FULL : MQX_OK;
        CHECK_INT(mqx_unit_end_autocommit(&engine.manager->store, unit->context, status), status);
        CHECK_INT(depth(q), failed ? 0 : 1);
        CHECK_STR(drain(q), failed ? "" : "x");
    }
}

TEST(the_room_of_a_unit_is_what_maxumsgs_leaves_it)
{
    struct mqe_settings settings = engine_settings();
    settings.max_uncommitted = 3;
    engine_begin_with(&settings);
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    for (uint32_t room = 3; room > 0; room--) {
        CHECK_INT(mqe_unit_room(unit), room);
        CHECK_INT(PUT(q, .text = "x", .unit = unit), 0);
    }
    CHECK_INT(mqe_unit_room(unit), 0);
    mqx_store_relaxed(&engine_region()->header->max_uncommitted, 2u);
    CHECK_INT(mqe_unit_room(unit), 0);
    CHECK_INT(mqe_backout(unit), 0);
    CHECK_INT(mqe_unit_room(unit), 2);
}

/* Units that have put `text` each, persistent. */
static void put_in_each(struct queue q, mqe_unit **units, const char *const *text, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        units[i] = engine_unit();
        CHECK_INT(PUT(q, .text = text[i], .unit = units[i], .persistent = 1), 0);
    }
}

TEST(units_that_are_committed_together_share_one_flush)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    static const char *const TEXT[] = {"a", "b", "c"};
    mqe_unit *units[3];
    uint32_t count = 0;
    put_in_each(q, units, TEXT, 3);
    const uint64_t before = engine_region()->journal->flushes;
    CHECK_INT(mqe_commit_many(units, 3, &count), 0);
    CHECK_INT(count, 3);
    CHECK_INT(engine_region()->journal->flushes - before, 1);
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_INT(mqx_context(engine_region(), units[i]->context)->state, MQX_CTX_IDLE);
        CHECK_INT(mqe_unit_count(units[i]), 0);
    }
    CHECK_STR(drain(q), "a b c");
}

TEST(an_empty_unit_and_one_without_persistent_messages_commit_together_with_others)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *units[3] = {engine_unit(), engine_unit(), engine_unit()};
    uint32_t count = 0;
    CHECK_INT(PUT(q, .text = "n", .unit = units[1]), 0);
    CHECK_INT(PUT(q, .text = "p", .unit = units[2], .persistent = 1), 0);
    CHECK_INT(mqe_commit_many(units, 3, &count), 0);
    CHECK_INT(count, 3);
    CHECK_STR(drain(q), "n p");
}

TEST(a_unit_that_must_back_out_ends_a_common_commit_and_leaves_those_behind_as_they_were)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    static const char *const TEXT[] = {"a", "b", "c"};
    mqe_unit *units[3];
    uint32_t count = 9;
    put_in_each(q, units, TEXT, 3);
    struct mqx_context *second = mqx_context(engine_region(), units[1]->context);
    mqx_store_release(&second->must_back_out, second->first_lsn);
    CHECK_INT(mqe_commit_many(units, 3, &count), MQRC_BACKED_OUT);
    CHECK_STR(mqe_error_text(), "the unit held the journal for too long and was backed out");
    CHECK_INT(count, 1);
    CHECK_INT(mqe_unit_count(units[2]), 1);
    CHECK_STR(drain(q), "a");
    CHECK_INT(mqe_commit_many(units + 2, 1, &count), 0);
    CHECK_INT(count, 1);
    CHECK_STR(drain(q), "c");
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
