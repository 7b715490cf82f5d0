/* Claims of prepare.c; test_prepared has those about the unit's life. */
#include "fixtures/prepared_fixture.h"

TEST(flags_and_xids_that_are_unknown_are_refused_and_the_unit_stays_usable)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    struct ps_xid xid = xid_of(1);
    CHECK_INT(PUT(q, .text = "a", .unit = unit), 0);
    CHECK_INT(mqe_prepare(unit, &xid, 4), MQRC_OPTIONS_ERROR);
    xid.format_id = -1;
    CHECK_INT(mqe_prepare(unit, &xid, 0), MQRC_OPTIONS_ERROR);
    xid = xid_of(1);
    xid.gtrid_length = 0;
    CHECK_INT(mqe_prepare(unit, &xid, 0), MQRC_OPTIONS_ERROR);
    CHECK_INT(mqe_unit_count(unit), 1);
    CHECK_INT(mqe_commit(unit), 0);
    CHECK_STR(drain(q), "a");
}

TEST(after_a_preparation_the_handle_has_a_unit_of_its_own_again)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    CHECK_INT(PUT(q, .text = "prepared", .persistent = 1, .unit = unit), 0);
    const uint32_t before = unit->context;
    CHECK_INT(prepare(unit, 1), 0);
    CHECK(unit->context != before);
    CHECK_INT(mqx_context(engine_region(), before)->process, 0);
    CHECK_INT(PUT(q, .text = "next", .unit = unit), 0);
    CHECK_INT(mqe_commit(unit), 0);
    CHECK_STR(drain(q), "next");
    CHECK_INT(commit(1), 0);
    CHECK_STR(drain(q), "prepared");
}

TEST(a_unit_that_must_back_out_is_backed_out_by_its_preparation)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    CHECK_INT(PUT(q, .text = "a", .unit = unit, .persistent = 1), 0);
    struct mqx_context *context = mqx_context(engine_region(), unit->context);
    mqx_store_release(&context->must_back_out, context->first_lsn);
    CHECK_INT(prepare(unit, 1), MQRC_BACKED_OUT);
    CHECK_INT(mqe_unit_count(unit), 0);
    CHECK_INT(depth(q), 0);
    CHECK_INT(commit(1), MQRC_UOW_NOT_AVAILABLE);
}

TEST(a_unit_prepared_empty_and_refused_leaves_no_context_in_use)
{
    struct mqe_manager_status status;
    engine_begin();
    mqe_unit *unit = engine_unit();
    CHECK_INT(prepare(unit, 1), MQRC_UOW_NOT_AVAILABLE);
    CHECK_INT(mqe_status(engine.manager, &status), 0);
    CHECK_INT(status.units, 0);
    CHECK_INT(status.prepared, 0);
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
