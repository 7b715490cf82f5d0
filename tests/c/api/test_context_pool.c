/* Claims of context_pool.c: contexts are used again, by one call at a time. */
#include "fixtures/engine_fixture.h"

TEST(a_thousand_calls_outside_units_use_the_same_contexts_again)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    const struct mqx_area *contexts = &engine_region()->header->area[MQX_AREA_CONTEXTS];
    const struct mqx_area *handles = &engine_region()->header->area[MQX_AREA_HANDLES];
    CHECK_INT(PUT(q, .text = "x", .persistent = 1), 0);
    CHECK_STR(TAKE(q), "x");
    CHECK_INT(engine_close(engine_open(q, 2)), 0);
    const uint64_t context_count = contexts->used, handle_count = handles->used;
    for (int i = 0; i < 1000; i++) {
        mqe_unit *unit = NULL;
        CHECK_INT(mqe_unit_new(engine.manager, &unit), 0);
        CHECK_INT(PUT(q, .text = "x", .persistent = 1, .unit = i % 2 ? unit : NULL), 0);
        CHECK_INT(mqe_commit(unit), 0);
        CHECK_STR(TAKE(q), "x");
        mqe_unit_free(unit);
        CHECK_INT(engine_close(engine_open(q, 2)), 0);
    }
    CHECK(contexts->used <= context_count + 1);
    CHECK_INT(handles->used, handle_count);
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
