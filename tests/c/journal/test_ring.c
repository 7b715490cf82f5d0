/*
 * test_ring.c - proves the ring of journal.h: an append is one micro-transaction, records of any
 * size come back, and puts leave the reserve to the records that free the journal.
 */
#include "fixtures/harness.h"

#include "base/checksum.h"
#include "base/error.h"
#include "fixtures/journal_fixture.h"
#include "journal/journal_private.h"

static struct psc_message listed[FIXTURE_LISTED_MAX];
#define FIXTURE FIXTURE_OF

TEST(an_append_changes_context_message_and_object_together)
{
    FIXTURE(fixture, 32768);
    struct mqx_journal *journal = fixture.store.region.journal;
    const uint32_t unit = fixture_unit(&fixture);
    struct mqx_context *context = mqx_context(&fixture.store.region, unit);
    struct mqx_append first, second, commit;
    const uint64_t tail = journal->tail;

    CHECK_INT(fixture_put(&fixture, unit, 1, 4, 100, &first), 0);
    CHECK_INT(first.lsn, tail);
    CHECK_INT(context->first_lsn, first.lsn);
    CHECK_INT(context->record_count, 1);
    CHECK_INT(context->state, MQX_CTX_ACTIVE);
    CHECK_INT(fixture_put(&fixture, unit, 2, 4, 100, &second), 0);
    CHECK_INT(second.lsn, first.end_lsn);
    CHECK_INT(context->first_lsn, first.lsn);
    CHECK_INT(context->record_count, 2);
    const struct psj_record *put = (const void *)mqx_ring_at(&fixture.store.region, first.lsn);
    uint32_t crc = mqx_crc32c(0, &put->crc, 4);
    put = (const void *)mqx_ring_at(&fixture.store.region, second.lsn);
    crc = mqx_crc32c(crc, &put->crc, 4);
    CHECK_INT(context->running_crc, crc);
    CHECK_INT(fixture_commit(&fixture, unit, &commit), 0);
    CHECK_INT(context->state, MQX_CTX_DECIDED);
    CHECK_INT(context->decided_lsn, commit.end_lsn);
    CHECK_INT(journal->durable < commit.end_lsn, 1); /* nothing was flushed */
}

TEST(records_of_all_sizes_come_back_across_many_segments_and_ring_turns)
{
    FIXTURE(fixture, 131072);
    struct test_random random = {test_seed()};
    uint64_t bytes = 0;
    for (uint64_t number = 1; number <= 120; number++) {
        const uint32_t length = (uint32_t)test_below(&random, number % 3 == 0 ? 30000 : 900);
        CHECK_INT(fixture_put(&fixture, 0, number, (int)(number % 10), length, NULL), 0);
        bytes += length;
        if (number % 7 == 0) {
            CHECK_INT(fixture_flush(&fixture), 0);
        }
    }
    CHECK(bytes > 2 * fixture.plan.ring_size);
    CHECK_INT(fixture_flush(&fixture), 0);
    CHECK(fixture.store.region.journal->next_segment_no > 5);
    fixture_crash(&fixture);
    CHECK_INT(fixture_open(&fixture), 0);
    CHECK_INT(fixture_list(&fixture, FIXTURE_QUEUE, listed), 120);
    for (uint32_t i = 0; i < 120; i++) {
        CHECK(fixture_verify(&fixture, &listed[i]));
    }
}

TEST(puts_stop_at_the_limit_while_gets_and_commits_go_on)
{
    FIXTURE(fixture, 32768);
    struct mqx_journal *journal = fixture.store.region.journal;
    const uint32_t unit = fixture_unit(&fixture);
    int status = 0;
    journal->limit = 4 * 32768;
    uint64_t number = 1;
    CHECK_INT(fixture_put(&fixture, unit, number++, 4, 1000, NULL), 0);
    while (status == 0) {
        status = fixture_put(&fixture, 0, number++, 4, 1000, NULL);
        CHECK(number < 1000);
    }
    CHECK_INT(status, MQRC_STORAGE_MEDIUM_FULL);
    const uint64_t tail = journal->tail;
    CHECK_INT(fixture_put(&fixture, 0, number, 4, 1000, NULL), MQRC_STORAGE_MEDIUM_FULL);
    CHECK_INT(journal->tail, tail); /* refused before anything was written */
    CHECK(journal->used_bytes <= journal->limit);
    for (uint64_t i = 2; i < 40; i++) {
        CHECK_INT(fixture_record(&fixture, 0, PS_REC_GET, i, NULL), 0);
    }
    CHECK_INT(fixture_commit(&fixture, unit, NULL), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    CHECK(journal->used_bytes <= journal->limit); /* the reserve was enough */
}

/* Three GET records of one unit, one behind the other. */
static void make_run(struct journal_fixture *fixture, uint32_t unit, unsigned char *records,
                     struct mqx_run *run)
{
    const uint64_t unit_id = mqx_context(&fixture->store.region, unit)->unit_id;
    *run = (struct mqx_run){.records = records, .context = unit, .count = 3};
    for (uint32_t i = 0, at = 0; i < run->count; at += run->length[i++]) {
        const struct mqx_record_head head = {.type = PS_REC_GET,
                                             .unit_id = unit_id,
                                             .object = FIXTURE_QUEUE,
                                             .object_gen = FIXTURE_GENERATION,
                                             .number = i + 1};
        run->length[i] = mqx_encode_plain(records + at, &head);
    }
}

TEST(a_run_is_in_the_ring_as_the_context_says)
{
    FIXTURE(fixture, 65536);
    struct mqx_journal *journal = fixture.store.region.journal;
    const uint32_t unit = fixture_unit(&fixture);
    const struct mqx_context *context = mqx_context(&fixture.store.region, unit);
    unsigned char records[512] MQX_ALIGNED(8);
    struct mqx_run run;
    make_run(&fixture, unit, records, &run);
    const uint64_t first = journal->tail;
    CHECK_INT(mqx_journal_append_run(&fixture.store, &run), 0);
    CHECK_INT(run.done, 3);
    CHECK_INT(run.done_bytes, 3 * run.length[0]);
    CHECK_INT(journal->tail, first + run.done_bytes);
    CHECK_INT(context->first_lsn, first);
    CHECK_INT(context->record_count, 3);
    CHECK_MEM(mqx_ring_at(&fixture.store.region, first), records, run.done_bytes);
    CHECK_INT(fixture_commit(&fixture, unit, NULL), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    fixture_crash(&fixture);
    CHECK_INT(fixture_open(&fixture), 0);
    CHECK_INT(fixture.report.units_dropped, 0); /* count and checksum of the run were right */
}

/* One short GET of the unit. */
static int append_short_get(struct journal_fixture *fixture, uint32_t unit, uint64_t number,
                            struct mqx_append *append)
{
    const struct mqx_record_head head = {
        .type = PS_REC_GET,
        .unit_id = mqx_context(&fixture->store.region, unit)->unit_id,
        .object = FIXTURE_QUEUE,
        .object_gen = FIXTURE_GENERATION,
        .number = number};
    static unsigned char record[64] MQX_ALIGNED(8);
    struct mqx_common *common =
        mqx_common_for(mqx_journal_store_id(&fixture->store), &head, NULL, true);
    CHECK(common != NULL);
    *append = (struct mqx_append){.record = record,
                                  .common = common,
                                  .length = mqx_encode_short_get(record, common, &head),
                                  .context = unit};
    return mqx_journal_append(&fixture->store, append);
}

TEST(a_common_record_stands_once_in_each_batch_in_front_of_the_first_that_refers_to_it)
{
    FIXTURE(fixture, 65536);
    struct mqx_journal *journal = fixture.store.region.journal;
    const uint32_t unit = fixture_unit(&fixture);
    const struct mqx_context *context = mqx_context(&fixture.store.region, unit);
    uint32_t records = 0;
    CHECK_INT(fixture_flush(&fixture), 0);
    for (uint32_t batch = 0; batch < 40; batch++) { /* over several segments */
        for (uint32_t i = 0; i < 3; i++) {
            const uint64_t tail = journal->tail;
            struct mqx_append append;
            CHECK_INT(append_short_get(&fixture, unit, 1 + records, &append), 0);
            const uint64_t first = journal->batch_start + sizeof(struct psj_batch);
            const struct psj_short *stored =
                (const void *)mqx_ring_at(&fixture.store.region, append.lsn);
            CHECK_INT(append.lsn, i == 0 ? first + sizeof(struct psj_record) : tail);
            CHECK_INT(append.end_lsn, append.lsn + sizeof *stored);
            CHECK_INT(append.lsn - stored->common, first);
            CHECK_INT(journal->batch_records, i + 2);
            records += 1;
            CHECK_INT(context->record_count, records);
        }
        CHECK_INT(fixture_flush(&fixture), 0);
    }
    CHECK(journal->next_segment_no > 2);
    CHECK_INT(fixture_commit(&fixture, unit, NULL), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    fixture_crash(&fixture);
    CHECK_INT(fixture_open(&fixture), 0);
    CHECK_INT(fixture.report.units_dropped, 0); /* count, first LSN and checksum were right */
}

TEST(a_short_record_may_begin_at_any_word_before_the_end_of_the_ring)
{
    FIXTURE(fixture, 1 << 20);
    struct mqx_journal *journal = fixture.store.region.journal;
    const uint64_t ring = fixture.store.region.ring_size;
    const uint32_t unit = fixture_unit(&fixture);
    uint32_t found[3] = {0}; /* 8, 16 and 24 bytes before it */
    uint64_t number = 1;
    for (uint32_t batch = 0; journal->tail < 40 * ring; batch++) {
        for (uint32_t i = 0; i < 300 + batch * 37 % 500; i++) {
            struct mqx_append append;
            CHECK_INT(append_short_get(&fixture, unit, number++, &append), 0);
            const uint64_t left = ring - append.lsn % ring;
            if (left <= 24) {
                found[left / 8 - 1] += 1;
            }
        }
        CHECK_INT(fixture_flush(&fixture), 0);
    }
    CHECK(found[0] > 0 && found[1] > 0 && found[2] > 0);
    CHECK_INT(fixture_commit(&fixture, unit, NULL), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    fixture_crash(&fixture);
    CHECK_INT(fixture_open(&fixture), 0);
    CHECK_INT(fixture.report.units_dropped, 0);
}

TEST(a_common_record_that_is_gone_from_the_ring_stops_the_flush)
{
    FIXTURE(fixture, 65536);
    const uint32_t unit = fixture_unit(&fixture);
    struct mqx_append append;
    CHECK_INT(append_short_get(&fixture, unit, 1, &append), 0);
    struct psj_short *stored = (void *)mqx_ring_at(&fixture.store.region, append.lsn);
    stored->common += 8;
    CHECK(fixture_flush(&fixture) != 0);
    CHECK_INT(fixture.store.region.header->stopped, MQX_STOP_BROKEN);
}

TEST(a_slot_that_cannot_be_true_stops_the_store_and_changes_nothing)
{
    for (uint32_t what = 0; what < 5; what++) {
        FIXTURE(fixture, 65536);
        struct mqx_journal *journal = fixture.store.region.journal;
        const uint32_t unit = fixture_unit(&fixture);
        unsigned char records[512] MQX_ALIGNED(8);
        struct mqx_run run;
        make_run(&fixture, unit, records, &run);
        struct mqx_append append = {.record = records, .length = run.length[0]};
        append.context = what == 0 ? 1u << 30 : 0;
        append.message = what == 1 ? 1u << 30 : 0;
        append.object = what == 2 ? 1u << 30 : 0;
        run.message[2] = 1u << 30;
        const uint32_t active = journal->active;
        const uint64_t tail = journal->tail;
        journal->active = what == 3 ? MQX_SEGMENT_MAX + 1 : active;
        const int status = what == 4 ? mqx_journal_append_run(&fixture.store, &run)
                                     : mqx_journal_append(&fixture.store, &append);
        CHECK(status != 0);
        CHECK_INT(journal->tail, tail);
        CHECK_INT(mqx_context(&fixture.store.region, unit)->first_lsn, 0);
        CHECK_INT(fixture.store.region.header->stopped, MQX_STOP_BROKEN);
        journal->active = active;
        CHECK_INT(fixture_record(&fixture, 0, PS_REC_GET, 1, NULL), MQRC_CONNECTION_BROKEN);
    }
}

TEST(a_unit_id_that_cannot_be_true_stops_the_store_and_aborts_nothing)
{
    static const uint64_t wrong[] = {0, PS_NUMBER_LIMIT, UINT64_MAX};
    for (size_t i = 0; i < MQX_ARRAY_COUNT(wrong); i++) {
        FIXTURE(fixture, 65536);
        fixture.store.region.journal->next_unit_id = wrong[i];
        CHECK(mqx_journal_unit_id(&fixture.store) != 0);
        CHECK_INT(fixture.store.region.header->stopped, MQX_STOP_BROKEN);
        CHECK_INT(fixture_record(&fixture, 0, PS_REC_GET, 1, NULL), MQRC_CONNECTION_BROKEN);
    }
}

TEST_MAIN()
