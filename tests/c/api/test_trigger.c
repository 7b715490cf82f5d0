/* Claims of api/trigger.c and of MQE_PUT_STAYS: puts on queues with triggers, and what survives the
 * end of a unit. */
#include "fixtures/engine_fixture.h"
#include "unit/prepared.h"

enum { CONTROL = 24, PRIORITY = 26, TYPE = 28 };

static int put_to(struct queue q, mqe_unit *unit, uint32_t flags, struct mqe_arrival *arrival)
{
    const struct mqe_destination to = mqe_direct(q.slot, q.generation);
    struct ps_descriptor d = {.priority = 5, .persistence = 0};
    return arrival == NULL
               ? mqe_put(engine.manager, unit, &to, &d, NULL, "x", 1, -1, flags)
               : mqe_put_attended(engine.manager, unit, &to, &d, NULL, "x", 1, -1, flags, arrival);
}

TEST(a_put_on_a_queue_with_triggers_is_refused_until_it_is_attended)
{
    engine_begin();
    struct queue q = QUEUE("Q", CONTROL, 1);
    struct mqe_arrival arrival;
    mqe_unit *unit = engine_unit();
    CHECK_INT(put_to(q, NULL, 0, NULL), MQE_ATTENDED);
    CHECK_INT(put_to(q, unit, 0, NULL), MQE_ATTENDED);
    CHECK_INT(depth(q), 0);
    CHECK_INT(put_to(q, unit, 0, &arrival), 0);
    CHECK_INT(arrival.before, 0);
    CHECK_INT(put_to(q, unit, 0, &arrival), 0);
    CHECK_INT(arrival.before, 1);
    CHECK(arrival.triggers);
    CHECK(!arrival.streams);
    CHECK_INT(mqe_commit(unit), 0);
    CHECK_INT(depth(q), 2);
}

TEST(notrigger_and_trigtype_none_ask_for_nothing)
{
    engine_begin();
    struct queue none = QUEUE("NONE", CONTROL, 1, TYPE, 0), off = QUEUE("OFF", TYPE, 3);
    CHECK_INT(put_to(none, NULL, 0, NULL), 0);
    CHECK_INT(put_to(off, NULL, 0, NULL), 0);
    CHECK_INT(mqe_trigger_version(engine.manager), 0);
}

TEST(values_of_triggers_that_cannot_be_have_their_reasons)
{
    const int bad[][3] = {{CONTROL, 2, 2075}, {PRIORITY, 10, 2077}, {TYPE, 4, 2078}};
    engine_begin();
    for (size_t i = 0; i < MQX_ARRAY_COUNT(bad); i++) {
        const struct ps_object_name name = engine_name("BAD");
        const int pairs[] = {bad[i][0], bad[i][1], 0};
        const struct attributes attrs = engine_attributes(pairs);
        uint32_t slot = 0, generation = 0;
        CHECK_INT(mqe_define(engine.manager, &name, attrs.bytes, attrs.length, &slot, &generation),
                  bad[i][2]);
    }
}

TEST(the_queues_with_triggers_are_listed_and_each_change_raises_the_version)
{
    engine_begin();
    (void)QUEUE("PLAIN", 0);
    struct queue q = QUEUE("Q", CONTROL, 1);
    uint32_t slot = 0, generation = 0, version = mqe_trigger_version(engine.manager);
    CHECK(version != 0);
    CHECK_INT(mqe_trigger_next(engine.manager, &slot, &generation), 0);
    CHECK_INT(slot, q.slot);
    CHECK_INT(generation, q.generation);
    CHECK_INT(mqe_trigger_next(engine.manager, &slot, &generation), MQRC_UNKNOWN_OBJECT_NAME);
    CHECK_INT(ALTER(q, "Q", CONTROL, 0), 0);
    CHECK(mqe_trigger_version(engine.manager) != version);
    slot = 0;
    CHECK_INT(mqe_trigger_next(engine.manager, &slot, &generation), MQRC_UNKNOWN_OBJECT_NAME);
    CHECK_INT(put_to(q, NULL, 0, NULL), 0);
}

TEST(a_message_that_stays_appears_with_the_commit_and_with_the_backout_of_its_unit)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    for (int committed = 0; committed < 2; committed++) {
        mqe_unit *unit = engine_unit();
        CHECK_INT(put_to(q, unit, 0, NULL), 0);
        CHECK_INT(put_to(q, unit, MQE_PUT_STAYS, NULL), 0);
        CHECK_STR(TAKE(q), "(2033)");
        CHECK_INT(committed ? mqe_commit(unit) : mqe_backout(unit), 0);
        CHECK_INT(depth(q), committed ? 2 : 1);
        CHECK_STR(TAKE(q), "x");
        CHECK_INT(got.backout_count, 0);
        CHECK_STR(drain(q), committed ? "x" : "");
    }
    CHECK_INT(mqe_check(engine.manager), 0);
}

TEST(a_message_that_stayed_is_got_and_backed_out_like_any)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    CHECK_INT(put_to(q, unit, MQE_PUT_STAYS, NULL), 0);
    CHECK_INT(mqe_backout(unit), 0);
    CHECK_STR(TAKE(q, .unit = unit), "x");
    CHECK_INT(mqe_backout(unit), 0);
    CHECK_INT(depth(q), 1);
    CHECK_STR(TAKE(q, .unit = unit), "x");
    CHECK_INT(mqe_commit(unit), 0);
    CHECK_INT(depth(q), 0);
}

TEST(the_last_close_for_input_makes_an_evaluation_due)
{
    engine_begin();
    struct queue q = QUEUE("Q", CONTROL, 1);
    mqe_queue *second = NULL;
    const struct mqe_destination to = mqe_direct(q.slot, q.generation);
    CHECK_INT(mqe_open(engine.manager, &to, 2, &second), 0);
    struct mqe_trigger_state state = {0};
    CHECK_INT(mqe_trigger_state(engine.manager, q.slot, q.generation, &state), 0);
    const uint32_t others = state.open_input - 1;
    CHECK_INT(mqe_close(second, 0), 0);
    CHECK(mqe_trigger_due(engine.manager, q.slot, q.generation) == (others == 0));
    CHECK_INT(state.last_us, 0);
    mqe_trigger_note(engine.manager, q.slot, q.generation);
    CHECK_INT(mqe_trigger_state(engine.manager, q.slot, q.generation, &state), 0);
    CHECK(state.last_us != 0);
    CHECK_INT(mqe_trigger_state(engine.manager, q.slot, q.generation + 1, &state), 2052);
    CHECK(!mqe_trigger_due(engine.manager, q.slot, q.generation + 1));
    CHECK(!mqe_trigger_due(engine.manager, 0, 0)); /* no queue has that slot */
    CHECK_INT(mqe_trigger_state(engine.manager, 0, 0, &state), 2052);
    mqe_trigger_settle(engine.manager, q.slot, q.generation + 1);
    mqe_trigger_note(engine.manager, q.slot, q.generation + 1);
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
