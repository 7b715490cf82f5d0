/* Claims of queue/performance.h: when an event occurs, who takes it, and the statistics. */
#include "queue/performance.h"

#include "fixtures/engine_fixture.h"

enum { LONG_MS = 10 * 1000, LONGER_US = LONG_MS * 1000 + 1, SLOT = 7 };

static struct mqx_object object;
static struct mqx_header header;
static struct mqx_region region;
static struct mqx_performance_report report;

static void start(uint32_t enabled, uint8_t low, uint8_t high)
{
    memset(&object, 0, sizeof object);
    memset(&header, 0, sizeof header);
    region = (struct mqx_region){.header = &header};
    header.performance_events = 1;
    object.max_depth = 10;
    object.performance = (struct mqx_performance){.enabled = enabled,
                                                  .interval_ms = LONG_MS,
                                                  .high_percent = high,
                                                  .low_percent = low,
                                                  .service_us = MQX_SERVICE_OFF};
}

static void put(void)
{
    object.present += 1;
    object.put_count += 1;
    mqx_performance_put(&region, &object, SLOT);
}

static void get(void)
{
    object.present -= 1;
    object.get_count += 1;
    mqx_performance_get(&region, &object, SLOT);
}

static uint32_t taken(void)
{
    return mqx_performance_take(&object, &report) ? report.event : 0;
}

TEST(the_high_event_occurs_once_at_the_limit_and_enables_low_and_full)
{
    start(MQX_EVENT_HIGH, 20, 50);
    for (int i = 0; i < 4; i++) {
        put();
    }
    CHECK_INT(taken(), 0);
    CHECK_INT(region.events_fired, 0);
    put();
    CHECK_INT(region.events_fired, 1);
    CHECK_INT(header.performance[SLOT % MQX_PERFORMANCE_MAX], SLOT);
    put();
    CHECK_INT(taken(), MQX_EVENT_HIGH);
    CHECK_INT(taken(), 0);
    CHECK_INT(object.performance.enabled, MQX_EVENT_LOW | MQX_EVENT_FULL);
}

TEST(the_low_event_occurs_at_a_get_alone)
{
    start(MQX_EVENT_LOW, 20, 80);
    put();
    put();
    CHECK_INT(taken(), 0);
    put();
    put();
    get();
    CHECK_INT(taken(), 0);
    get();
    CHECK_INT(taken(), MQX_EVENT_LOW);
    CHECK_INT(object.performance.enabled, MQX_EVENT_HIGH | MQX_EVENT_FULL);
}

TEST(messages_that_units_have_got_do_not_count)
{
    start(MQX_EVENT_HIGH | MQX_EVENT_LOW, 0, 50);
    for (int i = 0; i < 4; i++) {
        put();
    }
    object.got = 4;
    mqx_performance_get(&region, &object, SLOT);
    CHECK_INT(taken(), MQX_EVENT_LOW);
    put();
    CHECK_INT(taken(), 0);
}

TEST(nothing_occurs_while_events_are_disabled)
{
    start(MQX_EVENT_HIGH | MQX_EVENT_LOW | MQX_EVENT_FULL | MQX_EVENT_SERVICE_OK, 100, 0);
    header.performance_events = 0;
    put();
    get();
    CHECK_INT(taken(), 0);
    header.performance_events = 1;
    put();
    get();
    CHECK_INT(taken(), MQX_EVENT_HIGH);
    CHECK_INT(taken(), MQX_EVENT_LOW);
    CHECK_INT(taken(), MQX_EVENT_SERVICE_OK);
    CHECK_INT(taken(), 0);
}

TEST(the_service_timer_begins_with_a_put_to_an_empty_queue_and_with_each_get)
{
    start(MQX_EVENT_SERVICE_HIGH, 0, 100);
    put();
    const uint64_t first = object.performance.service_us;
    CHECK(first != MQX_SERVICE_OFF);
    put();
    CHECK(object.performance.service_us == first);
    object.performance.service_us = first - LONGER_US;
    get();
    CHECK_INT(taken(), MQX_EVENT_SERVICE_HIGH);
    CHECK(object.performance.service_us > first - 1);
    CHECK_INT(object.performance.enabled, MQX_EVENT_SERVICE_OK);
    get();
    CHECK_INT(taken(), MQX_EVENT_SERVICE_OK);
    CHECK(object.performance.service_us == MQX_SERVICE_OFF);
    CHECK_INT(object.performance.enabled, MQX_EVENT_SERVICE_HIGH);
}

TEST(a_put_cannot_be_ok_and_can_be_too_late)
{
    start(MQX_EVENT_SERVICE_OK, 0, 100);
    put();
    put();
    CHECK_INT(taken(), 0);
    start(MQX_EVENT_SERVICE_HIGH, 0, 100);
    put();
    const uint64_t long_ago = object.performance.service_us - LONGER_US;
    object.performance.service_us = long_ago;
    put();
    CHECK_INT(taken(), MQX_EVENT_SERVICE_HIGH);
    CHECK(object.performance.service_us == long_ago);
}

TEST(what_is_owed_is_hinted_again_by_the_next_call)
{
    start(MQX_EVENT_HIGH, 0, 10);
    put();
    memset(header.performance, 0, sizeof header.performance); /* a hint that was overwritten */
    region.events_fired = 0;
    put();
    CHECK_INT(region.events_fired, 1);
    CHECK_INT(header.performance[SLOT % MQX_PERFORMANCE_MAX], SLOT);
    CHECK_INT(taken(), MQX_EVENT_HIGH);
}

TEST(statistics_count_from_the_reset_on_and_open_units_are_in_them)
{
    start(0, 0, 100);
    put();
    put();
    put();
    get();
    object.high_depth = 3;
    mqx_performance_reset(&object, &report);
    CHECK_INT(report.high_depth, 3);
    CHECK_INT(report.puts, 3);
    CHECK_INT(report.gets, 1);
    object.got = 1;
    mqx_performance_reset(&object, &report);
    CHECK_INT(report.high_depth, 2);
    CHECK_INT(report.puts, 0);
    CHECK_INT(report.gets, 1);
    object.got = 0; /* backed out */
    mqx_performance_reset(&object, &report);
    CHECK_INT(report.gets, 0);
    CHECK_INT(report.high_depth, 2);
}

TEST_MAIN()
