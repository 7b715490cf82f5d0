/* Claims of handle_table.c: which opens exclude each other, and open counts. */
#include "fixtures/engine_fixture.h"

TEST(opens_are_counted_by_what_they_are_for_and_closes_count_back)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_queue *input = engine_open(q, 1), *browse = engine_open(q, MQE_BROWSE);
    mqe_queue *output = engine_open(q, MQE_OUTPUT);
    struct mqe_queue_status status = engine_status(q);
    CHECK_INT(status.open_input, 2); /* the fixture's own handle is for all */
    CHECK_INT(status.open_output, 2);
    CHECK_INT(status.open_other, 1);
    CHECK_INT(engine_close(input), 0);
    CHECK_INT(engine_close(browse), 0);
    CHECK_INT(engine_close(output), 0);
    CHECK_INT(engine_close(q.handle), 0);
    status = engine_status(q);
    CHECK_INT(status.open_input + status.open_output + status.open_other, 0);
}

TEST(exclusive_input_excludes_every_other_input_and_nothing_else)
{
    mqe_queue *handle = NULL;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(mqe_open_direct(engine.manager, q.slot, q.generation, MQE_INPUT_EXCLUSIVE, &handle),
              MQRC_OBJECT_IN_USE);
    CHECK_INT(engine_close(q.handle), 0);
    mqe_queue *exclusive = engine_open(q, MQE_INPUT_EXCLUSIVE);
    CHECK_INT(mqe_open_direct(engine.manager, q.slot, q.generation, 2, &handle),
              MQRC_OBJECT_IN_USE);
    CHECK_INT(mqe_open_direct(engine.manager, q.slot, q.generation, MQE_INPUT_EXCLUSIVE, &handle),
              MQRC_OBJECT_IN_USE);
    (void)engine_open(q, MQE_OUTPUT);
    (void)engine_open(q, MQE_BROWSE);
    CHECK_INT(engine_close(exclusive), 0);
    (void)engine_open(q, 2);
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
