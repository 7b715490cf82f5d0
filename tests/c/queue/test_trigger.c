/* Claims of queue/trigger.h: which messages count, and who evaluates. */
#include "fixtures/engine_fixture.h"
#include "queue/trigger.h"

static struct mqx_object object;

static void start(uint8_t least)
{
    memset(&object, 0, sizeof object);
    object.trigger_priority = least;
    for (uint32_t i = 0; i < MQX_PRIORITY_COUNT; i++) {
        object.level[i].present = i + 1;
        object.present += i + 1;
    }
}

TEST(messages_of_the_priority_and_higher_count)
{
    start(0);
    CHECK_INT(mqx_trigger_count(&object), 55);
    start(8);
    CHECK_INT(mqx_trigger_count(&object), 19);
    object.fifo = 1;
    CHECK_INT(mqx_trigger_count(&object), 55);
}

TEST(before_a_message_there_were_the_others_without_those_that_units_have_got)
{
    const struct mqx_message high = {.state = MQX_MSG_PUT, .placement = 8};
    const struct mqx_message low = {.state = MQX_MSG_PUT, .placement = 7};
    start(8);
    object.got = 4;
    CHECK_INT(mqx_trigger_arrived(&object, &high), 14);
    CHECK_INT(mqx_trigger_arrived(&object, &low), 15);
    object.got = 100;
    CHECK_INT(mqx_trigger_arrived(&object, &high), 0);
}

TEST(what_is_due_is_evaluated_by_one)
{
    start(0);
    CHECK(!mqx_trigger_is_due(&object));
    mqx_trigger_set_due(&object);
    CHECK(mqx_trigger_is_due(&object));
    CHECK(!mqx_trigger_is_due(&object));
    mqx_trigger_set_due(&object); /* again, before it is settled */
    mqx_trigger_settle(&object);
    CHECK(mqx_trigger_is_due(&object));
    mqx_trigger_settle(&object);
    CHECK_INT(object.trigger_due, 0);
    mqx_trigger_settle(&object);
    CHECK_INT(object.trigger_due, 0);
}

TEST(an_evaluation_that_a_put_left_under_way_is_due_after_seconds_whoever_else_settles)
{
    enum { AGE_S = 5, SECOND = 1 << 8 };
    const struct mqx_message put = {.state = MQX_MSG_PUT};
    start(0);
    (void)mqx_trigger_arrived(&object, &put);
    (void)mqx_trigger_arrived(&object, &put);
    mqx_trigger_settle(&object); /* one of the two; the other process was killed */
    CHECK(object.trigger_due != 0);
    CHECK(!mqx_trigger_is_due(&object));
    object.trigger_due -= AGE_S * SECOND;
    CHECK(mqx_trigger_is_due(&object));
    CHECK(!mqx_trigger_is_due(&object));
}

TEST(puts_under_way_beyond_the_most_are_not_counted)
{
    const struct mqx_message put = {.state = MQX_MSG_PUT};
    start(0);
    for (int i = 0; i < 300; i++) {
        (void)mqx_trigger_arrived(&object, &put);
    }
    for (int i = 0; i < 127; i++) {
        CHECK(object.trigger_due != 0);
        mqx_trigger_settle(&object);
    }
    CHECK_INT(object.trigger_due, 0);
}

TEST_MAIN()
