/* Claims of queue_handle.c: an open that is refused leaves nothing. */
#include "fixtures/engine_fixture.h"

TEST(a_queue_that_is_gone_cannot_be_opened_and_a_refused_open_leaves_no_handle)
{
    mqe_queue *handle = NULL;
    struct mqe_manager_status before, after;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(mqe_status(engine.manager, &before), 0);
    CHECK_INT(mqe_open_direct(engine.manager, q.slot, q.generation + 1, 2, &handle), 2085);
    CHECK_INT(mqe_open_direct(engine.manager, 99999999, 1, 2, &handle), 2085);
    CHECK_INT(mqe_open_direct(engine.manager, 0, 0, 2, &handle), 2085);
    CHECK_INT(mqe_open_direct(engine.manager, q.slot, q.generation, MQE_INPUT_EXCLUSIVE, &handle),
              2042);
    CHECK_INT(mqe_status(engine.manager, &after), 0);
    CHECK_INT(after.handles, before.handles);
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
