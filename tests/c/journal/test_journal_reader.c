/*
 * test_journal_reader.c - proves reading back of journal.h: bodies come from mappings, whole and
 * verified; what is damaged, recycled or unreadable is a reason code.
 */
#include "fixtures/harness.h"

#include "base/error.h"
#include "fixtures/journal_fixture.h"
#include "journal/journal_private.h"

static struct psc_message listed[FIXTURE_LISTED_MAX];
#define FIXTURE FIXTURE_OF

TEST(a_chunked_body_is_gathered_from_several_segments)
{
    FIXTURE(fixture, 65536);
    CHECK_INT(fixture_put_chunked(&fixture, 0, 5, 4, 300001, 20000, NULL), 0);
    CHECK_INT(fixture_put_chunked(&fixture, 0, 6, 4, 20000, 20000, NULL), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    fixture_crash(&fixture);
    CHECK_INT(fixture_open(&fixture), 0);
    CHECK_INT(fixture_list(&fixture, FIXTURE_QUEUE, listed), 2);
    CHECK_INT(listed[0].chunk_count, 16);
    CHECK(listed[0].first_lsn <= listed[0].lsn);
    CHECK(fixture_verify(&fixture, &listed[0]));
    CHECK(fixture_verify(&fixture, &listed[1]));
    uint64_t first = 0;
    CHECK_INT(mqx_journal_first_lsn(&fixture.store, listed[0].lsn, listed[0].record_length, &first),
              0);
    CHECK(first < listed[0].lsn - 200000);
}

TEST(fetching_a_body_makes_no_read_call_and_truncates_to_the_buffer)
{
    FIXTURE(fixture, 65536);
    CHECK_INT(fixture_put(&fixture, 0, 5, 4, 20000, NULL), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    fixture_crash(&fixture);
    CHECK_INT(fixture_open(&fixture), 0);
    CHECK_INT(fixture_list(&fixture, FIXTURE_QUEUE, listed), 1);
    const uint64_t reads = memory_io_calls(fixture.files, MEMORY_READ);
    CHECK(fixture_verify(&fixture, &listed[0]));
    CHECK_INT(memory_io_calls(fixture.files, MEMORY_READ), reads);
    const struct mqx_message m = {.number = 5, .lsn = listed[0].lsn, .length = 20000,
                                  .record_length = listed[0].record_length};
    unsigned char small[101];
    small[100] = 0x5a;
    CHECK_INT(mqx_journal_fetch(&fixture.store, &m, NULL, NULL, small, 100), 0);
    CHECK_INT(small[99], fixture_byte(5, 99));
    CHECK_INT(small[100], 0x5a);
}

TEST(a_damaged_body_is_refused_with_file_and_offset)
{
    FIXTURE(fixture, 65536);
    struct mqx_append append;
    CHECK_INT(fixture_put(&fixture, 0, 5, 4, 5000, &append), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    const struct mqx_message m = {.number = 5, .lsn = append.lsn, .length = 5000,
                                  .record_length = append.length};
    struct mqx_message other = m;
    unsigned char body[5000];
    CHECK_INT(mqx_journal_fetch(&fixture.store, &m, NULL, NULL, body, sizeof body), 0);
    other.number = 6;
    CHECK_INT(mqx_journal_fetch(&fixture.store, &other, NULL, NULL, body, 0), MQRC_OBJECT_DAMAGED);
    other = m;
    other.record_length += 8;
    CHECK_INT(mqx_journal_fetch(&fixture.store, &other, NULL, NULL, body, 0), MQRC_OBJECT_DAMAGED);
    other = m;
    other.lsn = 1u << 30;
    CHECK_INT(mqx_journal_fetch(&fixture.store, &other, NULL, NULL, body, 0), MQRC_OBJECT_DAMAGED);
    memory_io_flip_bit(fixture.files, fixture_segment_path(1), (append.lsn + 1000) * 8 + 3);
    CHECK_INT(mqx_journal_fetch(&fixture.store, &m, NULL, NULL, body, sizeof body),
              MQRC_OBJECT_DAMAGED);
    char offset[40];
    snprintf(offset, sizeof offset, "0000000001.psj, offset %" PRIu64, append.lsn);
    CHECK(strstr(mqx_error_text(), offset) != NULL);
}

TEST(a_bad_sector_under_the_mapping_is_a_reason_code)
{
    FIXTURE(fixture, 65536);
    struct mqx_append append;
    CHECK_INT(fixture_put(&fixture, 0, 5, 4, 5000, &append), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    const struct mqx_message m = {.number = 5, .lsn = append.lsn, .length = 5000,
                                  .record_length = append.length};
    const struct memory_fault fault = {.kind = MEMORY_FAULT_ERROR, .at = 1, .error = 5,
                                       .ops = 1u << MEMORY_POPULATE};
    memory_io_set_fault(fixture.files, &fault);
    CHECK_INT(mqx_journal_fetch(&fixture.store, &m, NULL, NULL, NULL, 0), MQRC_OBJECT_DAMAGED);
    CHECK_INT(mqx_journal_fetch(&fixture.store, &m, NULL, NULL, NULL, 0), 0);
}

/* Leaves segments with nothing alive in them behind. */
static void fill_segments(struct journal_fixture *fixture, uint64_t upto)
{
    uint64_t number = 1000;
    while (fixture->store.region.journal->next_segment_no <= upto) {
        CHECK_INT(fixture_put(fixture, 0, number, 4, 3000, NULL), 0);
        CHECK_INT(fixture_record(fixture, 0, PS_REC_GET, number, NULL), 0);
        number += 1;
    }
    CHECK_INT(fixture_flush(fixture), 0);
}

TEST(a_mapping_of_a_recycled_segment_is_not_believed)
{
    FIXTURE(fixture, 32768);
    struct mqx_journal *journal = fixture.store.region.journal;
    static const uint32_t nothing_alive[MQX_SEGMENT_MAX];
    struct mqx_append append;
    unsigned char body[3000];
    CHECK_INT(fixture_put(&fixture, 0, 5, 4, 3000, &append), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    const struct mqx_message m = {.number = 5, .lsn = append.lsn, .length = 3000,
                                  .record_length = append.length};
    CHECK_INT(mqx_journal_fetch(&fixture.store, &m, NULL, NULL, body, sizeof body), 0);
    fill_segments(&fixture, 3);
    CHECK_INT(mqx_journal_fetch(&fixture.store, &m, NULL, NULL, body, sizeof body), 0);
    const uint32_t maps = memory_io_map_count(fixture.files);
    CHECK_INT(mqx_journal_retire(&fixture.store, journal->next_segment_no - 1,
                                 journal->batch_start, nothing_alive), 0);
    CHECK_INT(mqx_journal_fetch(&fixture.store, &m, NULL, NULL, body, sizeof body),
              MQRC_OBJECT_DAMAGED);
    CHECK_INT(memory_io_map_count(fixture.files), maps - 1); /* and it is let go */
}

TEST(mappings_of_retired_segments_are_dropped_by_a_process_that_reads_no_more)
{
    FIXTURE(fixture, 32768);
    struct mqx_journal *journal = fixture.store.region.journal;
    static const uint32_t nothing_alive[MQX_SEGMENT_MAX];
    struct mqx_append append[3];
    const uint32_t before = memory_io_map_count(fixture.files);
    for (uint32_t i = 0; i < MQX_ARRAY_COUNT(append); i++) {
        CHECK_INT(fixture_put(&fixture, 0, i + 1, 4, 3000, &append[i]), 0);
        fill_segments(&fixture, i + 2);
        const struct mqx_message m = {.number = i + 1, .lsn = append[i].lsn, .length = 3000,
                                      .record_length = append[i].length};
        CHECK_INT(mqx_journal_fetch(&fixture.store, &m, NULL, NULL, NULL, 0), 0);
    }
    const uint32_t maps = memory_io_map_count(fixture.files);
    CHECK(maps >= before + 3);
    mqx_journal_drop_retired(&fixture.store);
    CHECK_INT(memory_io_map_count(fixture.files), maps); /* all of them are in use */
    CHECK_INT(mqx_journal_retire(&fixture.store, journal->next_segment_no - 1,
                                 journal->batch_start, nothing_alive), 0);
    CHECK_INT(memory_io_map_count(fixture.files), maps);
    mqx_journal_drop_retired(&fixture.store);
    CHECK(memory_io_map_count(fixture.files) <= before + 1); /* the active segment at most */
}

TEST(at_most_64_segments_are_mapped_at_a_time)
{
    FIXTURE(fixture, 32768);
    struct mqx_append appends[80];
    fixture.store.region.journal->limit = 1u << 30;
    for (uint32_t i = 0; i < 80; i++) {
        CHECK_INT(fixture_put(&fixture, 0, i + 1, 4, 20000, &appends[i]), 0);
    }
    CHECK_INT(fixture_flush(&fixture), 0);
    const uint32_t before = memory_io_map_count(fixture.files);
    for (uint32_t turn = 0; turn < 2; turn++) {
        for (uint32_t i = 0; i < 80; i++) {
            const struct mqx_message m = {.number = i + 1, .lsn = appends[i].lsn, .length = 20000,
                                          .record_length = appends[i].length};
            CHECK_INT(mqx_journal_fetch(&fixture.store, &m, NULL, NULL, NULL, 0), 0);
            CHECK(memory_io_map_count(fixture.files) - before <= MQX_MAPPED_MAX);
        }
    }
}

TEST_MAIN()
