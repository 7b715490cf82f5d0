/*
 * test_replay.c - proves replay.h as a whole: records of newer versions, and what goes on above
 * them.
 */
#include "fixtures/harness.h"

#include "base/checksum.h"
#include "base/error.h"
#include "fixtures/journal_fixture.h"

static struct psc_message listed[RIG_LISTED_MAX];
#define RIG RIG_OF

TEST(an_unknown_must_understand_record_refuses_the_journal_and_an_optional_one_does_not)
{
    for (uint32_t must = 0; must < 2; must++) {
        RIG(rig, 65536);
        unsigned char record[64] MQX_ALIGNED(8);
        const struct mqx_record_head head = {.type = PS_REC_GET};
        const uint32_t length = mqx_encode_plain(record, &head);
        struct psj_record *stored = (void *)record;
        stored->type = (uint16_t)(55 | (must != 0 ? PS_MUST_UNDERSTAND : 0));
        stored->crc = mqx_crc32c(mqx_crc32c(0, record, 4), record + 8, length - 8);
        CHECK_INT(rig_append(&rig, record, length), 0);
        CHECK_INT(rig_put(&rig, 0, 1, 4, 10, NULL), 0);
        CHECK_INT(rig_flush(&rig), 0);
        rig_crash(&rig);
        CHECK_INT(rig_open(&rig), must != 0 ? MQRC_OBJECT_DAMAGED : 0);
        if (must == 0) {
            CHECK_STR(rig_numbers(&rig, RIG_QUEUE, listed), "1");
        }
    }
}

TEST(numbers_and_unit_ids_go_on_above_everything_seen)
{
    RIG(rig, 65536);
    const uint32_t unit = rig_unit(&rig);
    const uint64_t id = mqx_context(&rig.store.region, unit)->unit_id;
    CHECK_INT(rig_put(&rig, unit, 7777, 4, 10, NULL), 0);
    CHECK_INT(rig_flush(&rig), 0);
    RIG_REOPEN(rig);
    CHECK(rig.store.region.journal->next_number > 7777);
    CHECK(mqx_journal_unit_id(&rig.store) > id);
}

TEST_MAIN()
