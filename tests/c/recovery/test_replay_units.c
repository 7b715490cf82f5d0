/*
 * test_replay_units.c - proves what replay.h says of units of work: whole or absent, and a COMMIT
 * that disagrees with its records is damage.
 */
#include "fixtures/harness.h"

#include "base/error.h"
#include "fixtures/journal_fixture.h"

static struct psc_message listed[RIG_LISTED_MAX];
#define RIG RIG_OF

TEST(units_are_whole_or_absent)
{
    RIG(rig, 65536);
    const uint32_t done = rig_unit(&rig), open = rig_unit(&rig), back = rig_unit(&rig);
    CHECK_INT(rig_put(&rig, 0, 1, 4, 10, NULL), 0);
    CHECK_INT(rig_put(&rig, 0, 2, 4, 10, NULL), 0);
    CHECK_INT(rig_put(&rig, 0, 3, 4, 10, NULL), 0);
    CHECK_INT(rig_put(&rig, done, 4, 4, 10, NULL), 0);
    CHECK_INT(rig_record(&rig, done, PS_REC_GET, 1, NULL), 0);
    CHECK_INT(rig_put(&rig, open, 5, 4, 10, NULL), 0);
    CHECK_INT(rig_record(&rig, open, PS_REC_GET, 2, NULL), 0);
    CHECK_INT(rig_put(&rig, back, 6, 4, 10, NULL), 0);
    CHECK_INT(rig_record(&rig, back, PS_REC_GET, 3, NULL), 0);
    CHECK_INT(rig_commit(&rig, done, NULL), 0);
    CHECK_INT(rig_record(&rig, back, PS_REC_BACKOUT, 0, NULL), 0);
    CHECK_INT(rig_flush(&rig), 0);
    RIG_REOPEN(rig);
    CHECK_STR(rig_numbers(&rig, RIG_QUEUE, listed), "2 3 4");
    CHECK_INT(rig.report.units_dropped, 1);
    CHECK(rig.store.region.journal->next_number > 6); /* of units that are gone, too */
}

TEST(a_put_that_commits_in_one_record_takes_its_pieces_with_it)
{
    RIG(rig, 65536);
    const uint32_t unit = rig_unit(&rig);
    CHECK_INT(rig_put_chunked(&rig, unit, 1, 4, 100000, 15000, NULL), 0);
    CHECK_INT(rig_commit(&rig, unit, NULL), 0);
    CHECK_INT(rig_flush(&rig), 0);
    RIG_REOPEN(rig);
    CHECK_STR(rig_numbers(&rig, RIG_QUEUE, listed), "1");
    CHECK(rig_verify(&rig, &listed[0]));
}

TEST(ten_thousand_units_in_flight_at_once_are_kept_apart)
{
    RIG(rig, 8u << 20);
    enum { UNITS = 2000 };
    static uint32_t units[UNITS];
    for (uint32_t i = 0; i < UNITS; i++) {
        units[i] = rig_unit(&rig);
    }
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < UNITS; i++) {
            CHECK_INT(rig_put(&rig, units[i], 1 + i * 3 + round, 4, 8, NULL), 0);
        }
    }
    for (uint32_t i = 0; i < UNITS; i += 2) {
        CHECK_INT(rig_commit(&rig, units[UNITS - 2 - i], NULL), 0);
    }
    CHECK_INT(rig_flush(&rig), 0);
    RIG_REOPEN(rig);
    CHECK_INT(rig_list(&rig, RIG_QUEUE, listed), UNITS / 2 * 3);
    for (uint32_t i = 0; i < UNITS / 2 * 3; i++) {
        CHECK_INT(listed[i].number, 1 + i / 3 * 6 + i % 3);
    }
    CHECK_INT(rig.report.units_dropped, UNITS / 2);
}

TEST(units_whose_ids_meet_in_the_table_are_kept_apart_while_others_end)
{
    RIG(rig, 1u << 20);
    enum { UNITS = 400 };
    static uint32_t units[UNITS];
    struct test_random random = {test_seed()};
    uint32_t committed = 0;
    for (uint32_t i = 0; i < UNITS; i++) { /* ids at random, so that many share a home */
        units[i] = rig_unit(&rig);
        struct mqx_context *context = mqx_context(&rig.store.region, units[i]);
        context->unit_id = 1000 + i * 1000000 + test_below(&random, 1000000);
        CHECK_INT(rig_put(&rig, units[i], 1 + i, 4, 8, NULL), 0);
    }
    for (uint32_t i = 0; i < UNITS; i += 1 + (uint32_t)test_below(&random, 2)) {
        CHECK_INT(rig_commit(&rig, units[i], NULL), 0);
        committed += 1;
    }
    CHECK_INT(rig_flush(&rig), 0);
    RIG_REOPEN(rig);
    CHECK_INT(rig_list(&rig, RIG_QUEUE, listed), committed);
    CHECK_INT(rig.report.units_dropped, UNITS - committed);
}

TEST(a_commit_that_disagrees_with_its_unit_is_damage)
{
    for (uint32_t wrong = 0; wrong < 4; wrong++) {
        RIG(rig, 65536);
        const uint32_t unit = rig_unit(&rig);
        const struct mqx_context *context = mqx_context(&rig.store.region, unit);
        unsigned char record[128] MQX_ALIGNED(8);
        CHECK_INT(rig_put(&rig, unit, 1, 4, 10, NULL), 0);
        CHECK_INT(rig_put(&rig, unit, 2, 4, 10, NULL), 0);
        struct ps_commit commit = {context->first_lsn, context->record_count,
                                   context->running_crc};
        commit.first_lsn += wrong == 1 ? 8 : 0;
        commit.record_count += wrong == 2;
        commit.running_crc ^= wrong == 3;
        const struct mqx_record_head head = {.type = PS_REC_COMMIT, .unit_id = context->unit_id};
        CHECK_INT(rig_append(&rig, record, mqx_encode_commit(record, &head, &commit)), 0);
        CHECK_INT(rig_flush(&rig), 0);
        rig_crash(&rig);
        CHECK_INT(rig_open(&rig), wrong == 0 ? 0 : MQRC_OBJECT_DAMAGED);
    }
}

TEST_MAIN()
