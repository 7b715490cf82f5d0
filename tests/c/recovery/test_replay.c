/*
 * test_replay.c - proves replay.h as a whole: records of newer versions, and what continues above
 * them.
 */
#include "fixtures/harness.h"

#include "base/checksum.h"
#include "base/error.h"
#include "fixtures/journal_fixture.h"

static struct psc_message listed[FIXTURE_LISTED_MAX];
#define FIXTURE FIXTURE_OF

TEST(an_unknown_must_understand_record_refuses_the_journal_and_an_optional_one_does_not)
{
    for (uint32_t must = 0; must < 2; must++) {
        FIXTURE(fixture, 65536);
        unsigned char record[64] MQX_ALIGNED(8);
        const struct mqx_record_head head = {.type = PS_REC_GET};
        const uint32_t length = mqx_encode_plain(record, &head);
        struct psj_record *stored = (void *)record;
        stored->type = (uint8_t)(55 | (must != 0 ? PS_MUST_UNDERSTAND : 0));
        stored->crc = mqx_crc32c(mqx_crc32c(0, record, 4), record + 8, length - 8);
        CHECK_INT(fixture_append(&fixture, record, length), 0);
        CHECK_INT(fixture_put(&fixture, 0, 1, 4, 10, NULL), 0);
        CHECK_INT(fixture_flush(&fixture), 0);
        fixture_crash(&fixture);
        CHECK_INT(fixture_open(&fixture), must != 0 ? MQRC_OBJECT_DAMAGED : 0);
        if (must == 0) {
            CHECK_STR(fixture_numbers(&fixture, FIXTURE_QUEUE, listed), "1");
        }
    }
}

TEST(numbers_and_unit_ids_go_on_above_everything_seen)
{
    FIXTURE(fixture, 65536);
    const uint32_t unit = fixture_unit(&fixture);
    const uint64_t id = mqx_context(&fixture.store.region, unit)->unit_id;
    CHECK_INT(fixture_put(&fixture, unit, 7777, 4, 10, NULL), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    FIXTURE_REOPEN(fixture);
    CHECK(fixture.store.region.journal->next_number > 7777);
    CHECK(mqx_journal_unit_id(&fixture.store) > id);
}

TEST(numbers_that_are_never_given_out_do_not_move_the_counters)
{
    FIXTURE(fixture, 65536);
    const uint32_t unit = fixture_unit(&fixture);
    mqx_context(&fixture.store.region, unit)->unit_id = UINT64_MAX;
    CHECK_INT(fixture_put(&fixture, unit, 7, 4, 10, NULL), 0);
    CHECK_INT(fixture_put(&fixture, 0, UINT64_MAX, 4, 10, NULL), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    FIXTURE_REOPEN(fixture);
    const struct mqx_journal *journal = fixture.store.region.journal;
    CHECK(journal->next_number > 7 && journal->next_number < PS_NUMBER_LIMIT);
    CHECK(mqx_journal_unit_id(&fixture.store) < PS_NUMBER_LIMIT);
}

TEST_MAIN()
