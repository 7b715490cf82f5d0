/*
 * test_replay_prepared.c - proves what replay.h says of prepared units: they outlive the epoch
 * until their outcome is read, and a preparation that disagrees with its records is damage.
 */
#include "fixtures/harness.h"

#include "base/error.h"
#include "fixtures/journal_fixture.h"

#define FIXTURE FIXTURE_OF

static uint32_t fixture_prepare(struct journal_fixture *fixture, uint32_t unit, uint32_t wrong,
                                uint64_t *out_id)
{
    const struct mqx_context *context = mqx_context(&fixture->store.region, unit);
    const struct mqx_record_head head = {.type = PS_REC_PREPARE, .unit_id = context->unit_id};
    const struct ps_xid xid = {.format_id = 1, .gtrid_length = 1, .gtrid = {(uint8_t)unit}};
    const struct ps_prepared prepared = {.prepared_us = 1};
    unsigned char record[512] MQX_ALIGNED(8);
    struct ps_commit commit = {context->first_lsn, context->record_count, context->running_crc};
    commit.first_lsn += wrong == 1 ? 8 : 0;
    commit.record_count += wrong == 2;
    commit.running_crc ^= wrong == 3;
    *out_id = context->unit_id;
    const uint32_t length = mqx_encode_prepare(record, &head, &xid, &prepared, &commit);
    const int status = fixture_append(fixture, record, length);
    fixture_unit_over(fixture, unit);
    return (uint32_t)status;
}

TEST(a_preparation_that_disagrees_with_its_unit_is_damage)
{
    for (uint32_t wrong = 0; wrong < 4; wrong++) {
        FIXTURE(fixture, 65536);
        const uint32_t unit = fixture_unit(&fixture);
        uint64_t id = 0;
        CHECK_INT(fixture_put(&fixture, unit, 1, 4, 10, NULL), 0);
        CHECK_INT(fixture_put(&fixture, unit, 2, 4, 10, NULL), 0);
        CHECK_INT(fixture_prepare(&fixture, unit, wrong, &id), 0);
        CHECK_INT(fixture_flush(&fixture), 0);
        fixture_crash(&fixture);
        CHECK_INT(fixture_open(&fixture), wrong == 0 ? 0 : MQRC_OBJECT_DAMAGED);
        CHECK_INT(fixture.report.units_prepared, wrong == 0);
        CHECK_INT(fixture.report.units_dropped, 0);
    }
}

static int fixture_end_units(struct journal_fixture *fixture, uint16_t type, const uint64_t *ids,
                             uint32_t count)
{
    const struct mqx_record_head head = {.type = type};
    unsigned char record[512] MQX_ALIGNED(8);
    return fixture_append(fixture, record, mqx_encode_units(record, &head, ids, count));
}

TEST(the_end_of_prepared_units_names_some_of_them_and_passes_over_unknown_ones)
{
    static struct psc_message listed[FIXTURE_LISTED_MAX];
    for (int again = 0; again < 2; again++) { /* in the epoch of the preparation, or a later one */
        FIXTURE(fixture, 65536);
        uint64_t ids[8] = {0};
        for (uint32_t n = 0; n < 5; n++) {
            const uint32_t unit = fixture_unit(&fixture);
            CHECK_INT(fixture_put(&fixture, unit, 10 + n, 4, 10, NULL), 0);
            CHECK_INT(fixture_prepare(&fixture, unit, 0, &ids[n]), 0);
        }
        if (again != 0) {
            CHECK_INT(fixture_flush(&fixture), 0);
            fixture_crash(&fixture);
            CHECK_INT(fixture_open(&fixture), 0);
            CHECK_INT(fixture.report.units_prepared, 5);
            CHECK_INT(fixture_list(&fixture, FIXTURE_QUEUE, listed), 0);
        }
        const uint64_t committed[] = {ids[3], 999999, ids[0]}, refused[] = {ids[2]};
        CHECK_INT(fixture_end_units(&fixture, PS_REC_COMMIT_PREPARED, committed, 3), 0);
        CHECK_INT(fixture_end_units(&fixture, PS_REC_BACKOUT_PREPARED, refused, 1), 0);
        CHECK_INT(fixture_end_units(&fixture, PS_REC_COMMIT_PREPARED, refused, 1),
                  0); /* too late */
        CHECK_INT(fixture_flush(&fixture), 0);
        fixture_crash(&fixture);
        CHECK_INT(fixture_open(&fixture), 0);
        CHECK_INT(fixture.report.units_prepared, 2);
        CHECK_INT(fixture_list(&fixture, FIXTURE_QUEUE, listed), 2);
        CHECK_INT(listed[0].number, 10);
        CHECK_INT(listed[1].number, 13);
    }
}

TEST_MAIN()
