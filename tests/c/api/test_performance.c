/* Claims of api/performance.c: events of puts and gets, taken once, and queue statistics. */
#include "fixtures/engine_fixture.h"

enum {
    MAX_DEPTH = 15, HIGH_LIMIT = 40, FULL_EVENT = 42, HIGH_EVENT = 43, LOW_EVENT = 44,
    SERVICE_EVENT = 46, PERFORMANCE = 53,
};

static void begin(void)
{
    engine_begin();
    struct ps_object_name name = engine_name("QM1");
    name.name_space = 100 + MQOT_Q_MGR;
    name.type = MQOT_Q_MGR;
    const int pairs[] = {PERFORMANCE, 1, 0};
    const struct attributes attrs = engine_attributes(pairs);
    uint32_t slot = 0, generation = 0;
    CHECK_INT(mqe_define(engine.manager, &name, attrs.bytes, attrs.length, &slot, &generation), 0);
}

static int put_to(struct queue q, mqe_unit *unit)
{
    const struct mqe_destination to = mqe_direct(q.slot, q.generation);
    struct ps_descriptor d = {.priority = 5, .persistence = 0};
    return mqe_put(engine.manager, unit, &to, &d, NULL, "x", 1, -1, 0);
}

static uint32_t taken(struct queue q)
{
    struct mqe_queue_statistics found;
    uint32_t slot = 0, generation = 0;
    if (!mqe_performance_take(engine.manager, &slot, &generation, &found)) {
        CHECK_INT(*mqe_performance_flag(engine.manager), 0);
        CHECK(!mqe_performance_due(engine.manager));
        return 0;
    }
    CHECK_INT(slot, q.slot);
    CHECK_INT(generation, q.generation);
    return found.event;
}

TEST(puts_and_gets_cause_events_that_are_taken_once)
{
    begin();
    struct queue q = QUEUE("Q", MAX_DEPTH, 2, HIGH_LIMIT, 50, HIGH_EVENT, 1);
    CHECK_INT(taken(q), 0);
    CHECK_INT(put_to(q, NULL), 0);
    CHECK_INT(*mqe_performance_flag(engine.manager), 1);
    CHECK(mqe_performance_due(engine.manager));
    CHECK_INT(taken(q), MQE_EVENT_DEPTH_HIGH);
    CHECK_INT(taken(q), 0);
    CHECK_INT(put_to(q, NULL), 0);
    CHECK_INT(put_to(q, NULL), MQRC_Q_FULL);
    CHECK_INT(put_to(q, NULL), MQRC_Q_FULL);
    CHECK_INT(taken(q), MQE_EVENT_FULL);
    CHECK_INT(taken(q), 0);
}

TEST(a_queue_manager_without_perfmev_has_none)
{
    engine_begin();
    struct queue q = QUEUE("Q", MAX_DEPTH, 1, HIGH_EVENT, 1, SERVICE_EVENT, 1);
    CHECK_INT(put_to(q, NULL), 0);
    CHECK_INT(put_to(q, NULL), MQRC_Q_FULL);
    CHECK_INT(taken(q), 0);
}

TEST(uncommitted_messages_cause_events_too)
{
    begin();
    struct queue q = QUEUE("Q", MAX_DEPTH, 2, HIGH_LIMIT, 50, HIGH_EVENT, 1, LOW_EVENT, 1);
    mqe_unit *unit = engine_unit();
    CHECK_INT(put_to(q, unit), 0);
    CHECK_INT(taken(q), MQE_EVENT_DEPTH_HIGH);
    CHECK_INT(mqe_backout(unit), 0);
    CHECK_INT(taken(q), 0);
}

TEST(attributes_that_cannot_be_are_refused)
{
    const int bad[][2] = {{HIGH_LIMIT, 101}, {FULL_EVENT, 2}, {SERVICE_EVENT, 3}, {LOW_EVENT, -1}};
    engine_begin();
    for (size_t i = 0; i < MQX_ARRAY_COUNT(bad); i++) {
        const struct ps_object_name name = engine_name("BAD");
        const int pairs[] = {bad[i][0], bad[i][1], 0};
        const struct attributes attrs = engine_attributes(pairs);
        uint32_t slot = 0, generation = 0;
        CHECK_INT(mqe_define(engine.manager, &name, attrs.bytes, attrs.length, &slot, &generation),
                  MQRC_SELECTOR_NOT_FOR_TYPE);
    }
}

TEST(statistics_of_a_queue_that_is_gone_are_2052)
{
    struct mqe_queue_statistics found;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(put_to(q, NULL), 0);
    CHECK_INT(mqe_queue_statistics_reset(engine.manager, q.slot, q.generation, &found), 0);
    CHECK_INT(found.put_count, 1);
    CHECK_INT(found.high_depth, 1);
    CHECK_INT(mqe_queue_statistics_reset(engine.manager, q.slot, q.generation + 1, &found),
              MQRC_Q_DELETED);
    CHECK_INT(mqe_queue_statistics_reset(engine.manager, UINT32_MAX, 1, &found), MQRC_Q_DELETED);
}

TEST_MAIN()
