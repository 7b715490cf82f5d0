/*
 * test_replay_messages.c - proves what replay.h says of objects and messages: order, counts, and
 * what takes messages away.
 */
#include "fixtures/harness.h"

#include "base/error.h"
#include "fixtures/journal_fixture.h"

static struct psc_message listed[RIG_LISTED_MAX];
#define RIG RIG_OF

TEST(delivery_order_is_priority_then_put_order_not_commit_order)
{
    RIG(rig, 65536);
    const uint32_t a = rig_unit(&rig), b = rig_unit(&rig);
    CHECK_INT(rig_put(&rig, a, 1, 4, 10, NULL), 0);
    CHECK_INT(rig_put(&rig, b, 2, 4, 10, NULL), 0);
    CHECK_INT(rig_put(&rig, a, 3, 9, 10, NULL), 0);
    CHECK_INT(rig_put(&rig, b, 4, 0, 10, NULL), 0);
    CHECK_INT(rig_commit(&rig, b, NULL), 0);
    CHECK_INT(rig_put(&rig, a, 5, 9, 10, NULL), 0);
    CHECK_INT(rig_commit(&rig, a, NULL), 0);
    CHECK_INT(rig_flush(&rig), 0);
    RIG_REOPEN(rig);
    CHECK_STR(rig_numbers(&rig, RIG_QUEUE, listed), "3 5 1 2 4");
    CHECK_INT(rig.report.units_dropped, 0);
}

TEST(backout_counts_come_from_backout_records_and_from_units_in_flight)
{
    RIG(rig, 65536);
    struct ps_count count = {.identity = 2, .object = RIG_QUEUE, .count = 3};
    const struct mqx_record_head head = {.type = PS_REC_BACKOUT};
    unsigned char record[128] MQX_ALIGNED(8);
    for (uint64_t number = 1; number <= 3; number++) {
        CHECK_INT(rig_put(&rig, 0, number, 4, 10, NULL), 0);
    }
    struct mqx_append append = {.record = record,
                                .length = mqx_encode_counts(record, &head, &count, 1)};
    CHECK_INT(mqx_journal_append(&rig.store, &append), 0);
    count.count = 2; /* an older count that comes later changes nothing */
    append.length = mqx_encode_counts(record, &head, &count, 1);
    CHECK_INT(mqx_journal_append(&rig.store, &append), 0);
    CHECK_INT(rig_flush(&rig), 0);
    rig_crash(&rig);
    const struct mqx_in_flight in_flight[] = {{99, RIG_QUEUE, 1}, {3, RIG_QUEUE, 1}};
    rig.in_flight = in_flight;
    rig.in_flight_count = 2;
    CHECK_INT(rig_open(&rig), 0);
    for (int restart = 0; restart < 2; restart++) { /* the second time from the journal alone */
        CHECK_STR(rig_numbers(&rig, RIG_QUEUE, listed), "1 2 3");
        CHECK_INT(listed[0].backout_count, 0);
        CHECK_INT(listed[1].backout_count, 3);
        CHECK_INT(listed[2].backout_count, 1);
        RIG_REOPEN(rig);
    }
}

TEST(messages_go_with_their_object_and_its_generation)
{
    RIG(rig, 65536);
    CHECK_INT(rig_put(&rig, 0, 1, 4, 10, NULL), 0);
    CHECK_INT(rig_record(&rig, 0, PS_REC_OBJECT_DELETE, 0, NULL), 0);
    CHECK_INT(rig_define(&rig, RIG_QUEUE, RIG_GENERATION + 1), 0);
    CHECK_INT(rig_define(&rig, 7, 1), 0);
    CHECK_INT(rig_flush(&rig), 0);
    RIG_REOPEN(rig);
    CHECK_STR(rig_numbers(&rig, RIG_QUEUE, listed), "");
    CHECK_INT(rig.report.objects, 2);
    CHECK_INT(mqx_object(&rig.store.region, RIG_QUEUE)->generation, RIG_GENERATION + 1);
}

TEST(the_generation_of_a_slot_whose_object_is_gone_does_not_come_back)
{
    RIG(rig, 65536);
    CHECK_INT(rig_put(&rig, 0, 1, 4, 10, NULL), 0);
    CHECK_INT(rig_record(&rig, 0, PS_REC_OBJECT_DELETE, 0, NULL), 0);
    CHECK_INT(rig_flush(&rig), 0);
    RIG_REOPEN(rig);
    CHECK_INT(rig.report.objects, 0);
    CHECK(mqx_object(&rig.store.region, RIG_QUEUE)->generation > RIG_GENERATION);
}

TEST(clear_and_expire_take_messages_away)
{
    RIG(rig, 65536);
    for (uint64_t number = 1; number <= 5; number++) {
        CHECK_INT(rig_put(&rig, 0, number, 4, 10, NULL), 0);
    }
    CHECK_INT(rig_record(&rig, 0, PS_REC_CLEAR, 3, NULL), 0);
    CHECK_INT(rig_record(&rig, 0, PS_REC_EXPIRE, 4, NULL), 0);
    CHECK_INT(rig_flush(&rig), 0);
    RIG_REOPEN(rig);
    CHECK_STR(rig_numbers(&rig, RIG_QUEUE, listed), "3 5");
}

TEST(a_put_to_an_object_that_was_never_defined_is_damage)
{
    __attribute__((cleanup(rig_free))) struct rig rig;
    const struct mqx_region_plan plan = rig_plan(65536);
    rig_create(&rig, &plan);
    CHECK_INT(rig_open(&rig), 0);
    CHECK_INT(rig_put(&rig, 0, 1, 4, 10, NULL), 0);
    CHECK_INT(rig_flush(&rig), 0);
    rig_crash(&rig);
    CHECK_INT(rig_open(&rig), MQRC_OBJECT_DAMAGED);
}

TEST_MAIN()
