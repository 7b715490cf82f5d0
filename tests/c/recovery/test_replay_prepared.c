/*
 * test_replay_prepared.c - proves what replay.h says of prepared units: they outlive the epoch
 * until their outcome is read, and a preparation that disagrees with its records is damage.
 */
#include "fixtures/harness.h"

#include "base/error.h"
#include "fixtures/journal_fixture.h"

#define RIG RIG_OF

static uint32_t rig_prepare(struct rig *rig, uint32_t unit, uint32_t wrong, uint64_t *out_id)
{
    const struct mqx_context *context = mqx_context(&rig->store.region, unit);
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
    const int status = rig_append(rig, record, length);
    rig_unit_over(rig, unit);
    return (uint32_t)status;
}

TEST(a_preparation_that_disagrees_with_its_unit_is_damage)
{
    for (uint32_t wrong = 0; wrong < 4; wrong++) {
        RIG(rig, 65536);
        const uint32_t unit = rig_unit(&rig);
        uint64_t id = 0;
        CHECK_INT(rig_put(&rig, unit, 1, 4, 10, NULL), 0);
        CHECK_INT(rig_put(&rig, unit, 2, 4, 10, NULL), 0);
        CHECK_INT(rig_prepare(&rig, unit, wrong, &id), 0);
        CHECK_INT(rig_flush(&rig), 0);
        rig_crash(&rig);
        CHECK_INT(rig_open(&rig), wrong == 0 ? 0 : MQRC_OBJECT_DAMAGED);
        CHECK_INT(rig.report.units_prepared, wrong == 0);
        CHECK_INT(rig.report.units_dropped, 0);
    }
}

static int rig_end_units(struct rig *rig, uint16_t type, const uint64_t *ids, uint32_t count)
{
    const struct mqx_record_head head = {.type = type};
    unsigned char record[512] MQX_ALIGNED(8);
    return rig_append(rig, record, mqx_encode_units(record, &head, ids, count));
}

TEST(the_end_of_prepared_units_names_some_of_them_and_passes_over_unknown_ones)
{
    static struct psc_message listed[RIG_LISTED_MAX];
    for (int again = 0; again < 2; again++) { /* in the epoch of the preparation, or a later one */
        RIG(rig, 65536);
        uint64_t ids[8] = {0};
        for (uint32_t n = 0; n < 5; n++) {
            const uint32_t unit = rig_unit(&rig);
            CHECK_INT(rig_put(&rig, unit, 10 + n, 4, 10, NULL), 0);
            CHECK_INT(rig_prepare(&rig, unit, 0, &ids[n]), 0);
        }
        if (again != 0) {
            CHECK_INT(rig_flush(&rig), 0);
            rig_crash(&rig);
            CHECK_INT(rig_open(&rig), 0);
            CHECK_INT(rig.report.units_prepared, 5);
            CHECK_INT(rig_list(&rig, RIG_QUEUE, listed), 0);
        }
        const uint64_t committed[] = {ids[3], 999999, ids[0]}, refused[] = {ids[2]};
        CHECK_INT(rig_end_units(&rig, PS_REC_COMMIT_PREPARED, committed, 3), 0);
        CHECK_INT(rig_end_units(&rig, PS_REC_BACKOUT_PREPARED, refused, 1), 0);
        CHECK_INT(rig_end_units(&rig, PS_REC_COMMIT_PREPARED, refused, 1), 0); /* too late */
        CHECK_INT(rig_flush(&rig), 0);
        rig_crash(&rig);
        CHECK_INT(rig_open(&rig), 0);
        CHECK_INT(rig.report.units_prepared, 2);
        CHECK_INT(rig_list(&rig, RIG_QUEUE, listed), 2);
        CHECK_INT(listed[0].number, 10);
        CHECK_INT(listed[1].number, 13);
    }
}

TEST_MAIN()
