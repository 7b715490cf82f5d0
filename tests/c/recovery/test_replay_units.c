/*
 * test_replay_units.c - proves what replay.h says of units of work: whole or absent, and a COMMIT
 * that disagrees with its records is damage.
 */
#include "fixtures/harness.h"

#include "base/error.h"
#include "fixtures/journal_fixture.h"

static struct psc_message listed[FIXTURE_LISTED_MAX];
#define FIXTURE FIXTURE_OF

TEST(units_are_whole_or_absent)
{
    FIXTURE(fixture, 65536);
    const uint32_t done = fixture_unit(&fixture), open = fixture_unit(&fixture),
                   back = fixture_unit(&fixture);
    CHECK_INT(fixture_put(&fixture, 0, 1, 4, 10, NULL), 0);
    CHECK_INT(fixture_put(&fixture, 0, 2, 4, 10, NULL), 0);
    CHECK_INT(fixture_put(&fixture, 0, 3, 4, 10, NULL), 0);
    CHECK_INT(fixture_put(&fixture, done, 4, 4, 10, NULL), 0);
    CHECK_INT(fixture_record(&fixture, done, PS_REC_GET, 1, NULL), 0);
    CHECK_INT(fixture_put(&fixture, open, 5, 4, 10, NULL), 0);
    CHECK_INT(fixture_record(&fixture, open, PS_REC_GET, 2, NULL), 0);
    CHECK_INT(fixture_put(&fixture, back, 6, 4, 10, NULL), 0);
    CHECK_INT(fixture_record(&fixture, back, PS_REC_GET, 3, NULL), 0);
    CHECK_INT(fixture_commit(&fixture, done, NULL), 0);
    CHECK_INT(fixture_record(&fixture, back, PS_REC_BACKOUT, 0, NULL), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    FIXTURE_REOPEN(fixture);
    CHECK_STR(fixture_numbers(&fixture, FIXTURE_QUEUE, listed), "2 3 4");
    CHECK_INT(fixture.report.units_dropped, 1);
    CHECK(fixture.store.region.journal->next_number > 6); /* of units that are gone, too */
}

TEST(a_put_that_commits_in_one_record_takes_its_pieces_with_it)
{
    FIXTURE(fixture, 65536);
    const uint32_t unit = fixture_unit(&fixture);
    CHECK_INT(fixture_put_chunked(&fixture, unit, 1, 4, 100000, 15000, NULL), 0);
    CHECK_INT(fixture_commit(&fixture, unit, NULL), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    FIXTURE_REOPEN(fixture);
    CHECK_STR(fixture_numbers(&fixture, FIXTURE_QUEUE, listed), "1");
    CHECK(fixture_verify(&fixture, &listed[0]));
}

TEST(ten_thousand_units_in_flight_at_once_are_kept_apart)
{
    FIXTURE(fixture, 8u << 20);
    enum { UNITS = 2000 };
    static uint32_t units[UNITS];
    for (uint32_t i = 0; i < UNITS; i++) {
        units[i] = fixture_unit(&fixture);
    }
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < UNITS; i++) {
            CHECK_INT(fixture_put(&fixture, units[i], 1 + i * 3 + round, 4, 8, NULL), 0);
        }
    }
    for (uint32_t i = 0; i < UNITS; i += 2) {
        CHECK_INT(fixture_commit(&fixture, units[UNITS - 2 - i], NULL), 0);
    }
    CHECK_INT(fixture_flush(&fixture), 0);
    FIXTURE_REOPEN(fixture);
    CHECK_INT(fixture_list(&fixture, FIXTURE_QUEUE, listed), UNITS / 2 * 3);
    for (uint32_t i = 0; i < UNITS / 2 * 3; i++) {
        CHECK_INT(listed[i].number, 1 + i / 3 * 6 + i % 3);
    }
    CHECK_INT(fixture.report.units_dropped, UNITS / 2);
}

TEST(units_whose_ids_meet_in_the_table_are_kept_apart_while_others_end)
{
    FIXTURE(fixture, 1u << 20);
    enum { UNITS = 400 };
    static uint32_t units[UNITS];
    struct test_random random = {test_seed()};
    uint32_t committed = 0;
    for (uint32_t i = 0; i < UNITS; i++) { /* ids at random, so that many share a home */
        units[i] = fixture_unit(&fixture);
        struct mqx_context *context = mqx_context(&fixture.store.region, units[i]);
        context->unit_id = 1000 + i * 1000000 + test_below(&random, 1000000);
        CHECK_INT(fixture_put(&fixture, units[i], 1 + i, 4, 8, NULL), 0);
    }
    for (uint32_t i = 0; i < UNITS; i += 1 + (uint32_t)test_below(&random, 2)) {
        CHECK_INT(fixture_commit(&fixture, units[i], NULL), 0);
        committed += 1;
    }
    CHECK_INT(fixture_flush(&fixture), 0);
    FIXTURE_REOPEN(fixture);
    CHECK_INT(fixture_list(&fixture, FIXTURE_QUEUE, listed), committed);
    CHECK_INT(fixture.report.units_dropped, UNITS - committed);
}

TEST(a_commit_that_disagrees_with_its_unit_is_damage)
{
    for (uint32_t wrong = 0; wrong < 4; wrong++) {
        FIXTURE(fixture, 65536);
        const uint32_t unit = fixture_unit(&fixture);
        const struct mqx_context *context = mqx_context(&fixture.store.region, unit);
        unsigned char record[128] MQX_ALIGNED(8);
        CHECK_INT(fixture_put(&fixture, unit, 1, 4, 10, NULL), 0);
        CHECK_INT(fixture_put(&fixture, unit, 2, 4, 10, NULL), 0);
        struct ps_commit commit = {context->first_lsn, context->record_count,
                                   context->running_crc};
        commit.first_lsn += wrong == 1 ? 8 : 0;
        commit.record_count += wrong == 2;
        commit.running_crc ^= wrong == 3;
        const struct mqx_record_head head = {.type = PS_REC_COMMIT, .unit_id = context->unit_id};
        CHECK_INT(fixture_append(&fixture, record, mqx_encode_commit(record, &head, &commit)), 0);
        CHECK_INT(fixture_flush(&fixture), 0);
        fixture_crash(&fixture);
        CHECK_INT(fixture_open(&fixture), wrong == 0 ? 0 : MQRC_OBJECT_DAMAGED);
    }
}

TEST_MAIN()
