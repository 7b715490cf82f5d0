/* Claims of expire.c: steps, what is in a unit or locked, what is to be reported. */
#include "fixtures/engine_fixture.h"

#include "base/clock.h"
#include "queue/expire.h"

TEST(expired_messages_are_discarded_in_steps_of_at_most_64)
{
    struct mqx_expire_step step = {.more = true};
    int steps = 0;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    for (int i = 0; i < 300; i++) {
        CHECK_INT(PUT(q, .text = "x", .priority = i % 10, .expiry = i % 3 == 0 ? -1 + 2 : 90000,
                      .persistent = i % 2), 0);
    }
    const uint64_t later = mqx_clock_coarse_us() + 1000000;
    while (step.more) {
        const uint32_t before = depth(q);
        CHECK_INT(mqx_queue_expire_step(&engine.manager->store, q.slot, later, &step), 0);
        CHECK(before - depth(q) <= 64);
        steps++;
        CHECK(steps < 20);
    }
    CHECK_INT(depth(q), 200);
    CHECK_INT(mqx_object(engine_region(), q.slot)->expiring, 200);
    CHECK_INT(mqe_check(engine.manager), 0);
}

TEST(expired_messages_in_units_and_under_locks_are_left_to_their_owners)
{
    struct mqx_expire_step step;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    CHECK_INT(PUT(q, .text = "got", .expiry = 50), 0);
    CHECK_INT(PUT(q, .text = "locked", .expiry = 50), 0);
    CHECK_INT(PUT(q, .text = "put", .expiry = 50, .unit = unit), 0);
    CHECK_STR(TAKE(q, .unit = unit), "got");
    CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_FIRST | MQE_GET_LOCK), "locked");
    const uint64_t later = mqx_clock_coarse_us() + 20000000;
    CHECK_INT(mqx_queue_expire_step(&engine.manager->store, q.slot, later, &step), 0);
    CHECK_INT(mqx_object(engine_region(), q.slot)->present, 3);
    CHECK_INT(mqe_commit(unit), 0);
    CHECK_STR(TAKE(q, .flags = MQE_GET_UNLOCK), "");
    CHECK_INT(mqx_queue_expire_step(&engine.manager->store, q.slot, later, &step), 0);
    CHECK_INT(mqx_object(engine_region(), q.slot)->present, 0);
}

TEST(one_that_asks_for_a_report_and_names_a_queue_for_it_stays)
{
    struct mqx_expire_step step;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    for (int persistent = 0; persistent < 2; persistent++) {
        CHECK_INT(PUT(q, .text = "asks", .expiry = 50, .group = 1, .report = MQRO_EXPIRATION,
                      .persistent = persistent), 0);
        CHECK_INT(PUT(q, .text = "names", .expiry = 50, .group = 1, .persistent = persistent), 0);
        CHECK_INT(PUT(q, .text = "no queue", .expiry = 50, .report = MQRO_EXPIRATION,
                      .persistent = persistent), 0);
    }
    const uint64_t later = mqx_clock_coarse_us() + 20000000;
    CHECK_INT(mqx_queue_expire_step(&engine.manager->store, q.slot, later, &step), 0);
    CHECK(step.reports);
    CHECK(!step.more);
    CHECK_INT(depth(q), 2);
    CHECK_INT(mqe_check(engine.manager), 0);
}

TEST_MAIN()
