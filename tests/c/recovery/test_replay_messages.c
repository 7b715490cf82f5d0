/*
 * test_replay_messages.c - proves what replay.h says of objects and messages: order, counts, and
 * what takes messages away.
 */
#include "fixtures/harness.h"

#include "base/error.h"
#include "fixtures/journal_fixture.h"

static struct psc_message listed[FIXTURE_LISTED_MAX];
#define FIXTURE FIXTURE_OF

TEST(delivery_order_is_priority_then_put_order_not_commit_order)
{
    FIXTURE(fixture, 65536);
    const uint32_t a = fixture_unit(&fixture), b = fixture_unit(&fixture);
    CHECK_INT(fixture_put(&fixture, a, 1, 4, 10, NULL), 0);
    CHECK_INT(fixture_put(&fixture, b, 2, 4, 10, NULL), 0);
    CHECK_INT(fixture_put(&fixture, a, 3, 9, 10, NULL), 0);
    CHECK_INT(fixture_put(&fixture, b, 4, 0, 10, NULL), 0);
    CHECK_INT(fixture_commit(&fixture, b, NULL), 0);
    CHECK_INT(fixture_put(&fixture, a, 5, 9, 10, NULL), 0);
    CHECK_INT(fixture_commit(&fixture, a, NULL), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    FIXTURE_REOPEN(fixture);
    CHECK_STR(fixture_numbers(&fixture, FIXTURE_QUEUE, listed), "3 5 1 2 4");
    CHECK_INT(fixture.report.units_dropped, 0);
}

TEST(backout_counts_come_from_backout_records_and_from_units_in_flight)
{
    FIXTURE(fixture, 65536);
    struct ps_count count = {.identity = 2, .object = FIXTURE_QUEUE, .count = 3};
    const struct mqx_record_head head = {.type = PS_REC_BACKOUT};
    unsigned char record[128] MQX_ALIGNED(8);
    for (uint64_t number = 1; number <= 3; number++) {
        CHECK_INT(fixture_put(&fixture, 0, number, 4, 10, NULL), 0);
    }
    struct mqx_append append = {.record = record,
                                .length = mqx_encode_counts(record, &head, &count, NULL, 1)};
    CHECK_INT(mqx_journal_append(&fixture.store, &append), 0);
    count.count = 2; /* an older count that comes later changes nothing */
    append.length = mqx_encode_counts(record, &head, &count, NULL, 1);
    CHECK_INT(mqx_journal_append(&fixture.store, &append), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    fixture_crash(&fixture);
    const struct mqx_in_flight in_flight[] = {{99, FIXTURE_QUEUE, 1}, {3, FIXTURE_QUEUE, 1}};
    fixture.in_flight = in_flight;
    fixture.in_flight_count = 2;
    CHECK_INT(fixture_open(&fixture), 0);
    for (int restart = 0; restart < 2; restart++) { /* the second time from the journal alone */
        CHECK_STR(fixture_numbers(&fixture, FIXTURE_QUEUE, listed), "1 2 3");
        CHECK_INT(listed[0].backout_count, 0);
        CHECK_INT(listed[1].backout_count, 3);
        CHECK_INT(listed[2].backout_count, 1);
        FIXTURE_REOPEN(fixture);
    }
}

TEST(a_message_lies_where_its_last_moved_record_is_and_another_message_is_damage)
{
    FIXTURE(fixture, 65536);
    static unsigned char record[1024] MQX_ALIGNED(8);
    const struct ps_descriptor d = {.priority = 4, .placement = 4, .persistence = 1};
    const struct mqx_record_head moved = {.type = PS_REC_MOVED,
                                          .object = FIXTURE_QUEUE,
                                          .object_gen = FIXTURE_GENERATION,
                                          .number = 2};
    uint64_t last = 0;
    CHECK_INT(fixture_put(&fixture, 0, 1, 4, 10, NULL), 0);
    CHECK_INT(fixture_put(&fixture, 0, 2, 4, 10, NULL), 0);
    for (uint32_t length = 10; length <= 11; length++) {
        for (int i = 0; i < 2; i++) {
            struct mqx_append append = {.record = record};
            append.length = mqx_encode_put(record, &moved, &d, NULL, NULL, "0123456789x", length);
            CHECK_INT(mqx_journal_append(&fixture.store, &append), 0);
            CHECK(append.lsn > last);
            last = append.lsn;
        }
        CHECK_INT(fixture_flush(&fixture), 0);
        fixture_crash(&fixture);
        if (length == 11) { /* its body differs */
            CHECK_INT(fixture_open(&fixture), MQRC_OBJECT_DAMAGED);
            CHECK(strstr(mqx_error_text(), "differs from message 2") != NULL);
            return;
        }
        CHECK_INT(fixture_open(&fixture), 0);
        CHECK_STR(fixture_numbers(&fixture, FIXTURE_QUEUE, listed), "1 2");
        CHECK_INT(listed[1].lsn, last);
    }
}

TEST(messages_go_with_their_object_and_its_generation)
{
    FIXTURE(fixture, 65536);
    CHECK_INT(fixture_put(&fixture, 0, 1, 4, 10, NULL), 0);
    CHECK_INT(fixture_record(&fixture, 0, PS_REC_OBJECT_DELETE, 0, NULL), 0);
    CHECK_INT(fixture_define(&fixture, FIXTURE_QUEUE, FIXTURE_GENERATION + 1), 0);
    CHECK_INT(fixture_define(&fixture, 7, 1), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    FIXTURE_REOPEN(fixture);
    CHECK_STR(fixture_numbers(&fixture, FIXTURE_QUEUE, listed), "");
    CHECK_INT(fixture.report.objects, 2);
    CHECK_INT(mqx_object(&fixture.store.region, FIXTURE_QUEUE)->generation, FIXTURE_GENERATION + 1);
}

TEST(the_generation_of_a_slot_whose_object_is_gone_does_not_come_back)
{
    FIXTURE(fixture, 65536);
    CHECK_INT(fixture_put(&fixture, 0, 1, 4, 10, NULL), 0);
    CHECK_INT(fixture_record(&fixture, 0, PS_REC_OBJECT_DELETE, 0, NULL), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    FIXTURE_REOPEN(fixture);
    CHECK_INT(fixture.report.objects, 0);
    CHECK(mqx_object(&fixture.store.region, FIXTURE_QUEUE)->generation > FIXTURE_GENERATION);
}

TEST(clear_and_expire_take_messages_away)
{
    FIXTURE(fixture, 65536);
    for (uint64_t number = 1; number <= 5; number++) {
        CHECK_INT(fixture_put(&fixture, 0, number, 4, 10, NULL), 0);
    }
    CHECK_INT(fixture_record(&fixture, 0, PS_REC_CLEAR, 3, NULL), 0);
    CHECK_INT(fixture_record(&fixture, 0, PS_REC_EXPIRE, 4, NULL), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    FIXTURE_REOPEN(fixture);
    CHECK_STR(fixture_numbers(&fixture, FIXTURE_QUEUE, listed), "3 5");
}

TEST(a_put_to_an_object_that_was_never_defined_is_damage)
{
    __attribute__((cleanup(fixture_free))) struct journal_fixture fixture;
    const struct mqx_region_plan plan = fixture_plan(65536);
    fixture_create(&fixture, &plan);
    CHECK_INT(fixture_open(&fixture), 0);
    CHECK_INT(fixture_put(&fixture, 0, 1, 4, 10, NULL), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    fixture_crash(&fixture);
    CHECK_INT(fixture_open(&fixture), MQRC_OBJECT_DAMAGED);
}

TEST_MAIN()
