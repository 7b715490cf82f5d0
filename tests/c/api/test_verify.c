/* Claims of verify.c: verification finds structures that disagree. */
#include "fixtures/engine_fixture.h"

TEST(the_check_finds_a_count_that_disagrees)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    engine_fill(q, 200);
    TAKE(q, .correl = 99);
    CHECK_INT(mqe_check(engine.manager), 0);
    struct mqx_object *queue = mqx_object(engine_region(), q.slot);
    queue->level[3].present += 1;
    CHECK_INT(mqe_check(engine.manager), MQRC_OBJECT_DAMAGED);
    queue->level[3].present -= 1;
    queue->available_mask ^= 4;
    CHECK_INT(mqe_check(engine.manager), MQRC_OBJECT_DAMAGED);
    queue->available_mask ^= 4;
    CHECK_INT(mqe_check(engine.manager), 0);
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
