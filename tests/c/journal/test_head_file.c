/*
 * test_head_file.c - proves head_file.h: two pages written alternately and durable, the newest good
 * one counts, and a segment holds no record before HEAD names it.
 */
#include "fixtures/harness.h"

#include "base/error.h"
#include "fixtures/journal_fixture.h"
#include "journal/head_file.h"

#define FIXTURE FIXTURE_OF
#define HEAD_PATH FIXTURE_HOME "/HEAD"

static int read_head(struct journal_fixture *fixture, struct mqx_head *out)
{
    return mqx_head_read(fixture->io, fixture->store.dir, fixture->store.qm_id, MQX_IO_READ, out);
}

static int write_head(struct journal_fixture *fixture, uint64_t segment_no)
{
    const struct mqx_head head = {.segment_no = segment_no, .generation = segment_no + 10};
    bool unknown = false;
    return mqx_head_write(fixture->io, fixture->store.dir, fixture->store.qm_id, &head, &unknown);
}

/* Durable puts until segment `upto` is the active one. */
static void fill_segments(struct journal_fixture *fixture, uint64_t upto)
{
    uint64_t number = 1000;
    while (fixture->store.region.journal->next_segment_no <= upto) {
        CHECK_INT(fixture_put(fixture, 0, number++, 4, 3000, NULL), 0);
    }
    CHECK_INT(fixture_flush(fixture), 0);
}

TEST(a_new_head_has_two_good_pages_that_name_the_first_segment)
{
    FIXTURE(fixture, 32768);
    struct mqx_head head;
    CHECK_INT(read_head(&fixture, &head), 0);
    CHECK_INT(head.segment_no, 1);
    CHECK_INT(head.generation, 1);
    CHECK_INT(head.timeline, 0);
    CHECK(!head.damaged);
}

TEST(each_write_replaces_the_older_page_with_data_sync)
{
    FIXTURE(fixture, 32768);
    struct mqx_head head;
    CHECK_INT(read_head(&fixture, &head), 0);
    const uint64_t before = head.sequence;
    for (uint64_t i = 1; i <= 4; i++) {
        memory_io_record(fixture.files, FIXTURE_HOME);
        CHECK_INT(write_head(&fixture, i), 0);
        TAKE_TRACE(trace, fixture);
        CHECK_INT(trace->event_count, 1);
        CHECK_INT(trace->events[0].kind, MEMORY_EV_DWRITE);
        CHECK_INT(trace->events[0].offset, (before + i) % 2 * 4096);
        CHECK_INT(trace->events[0].size, 4096);
        CHECK_INT(read_head(&fixture, &head), 0);
        CHECK_INT(head.sequence, before + i);
        CHECK_INT(head.segment_no, i);
        CHECK_INT(head.generation, i + 10);
    }
}

TEST(any_changed_bit_of_a_page_leaves_the_other_one_and_the_next_write_mends_it)
{
    FIXTURE(fixture, 32768);
    struct mqx_head head;
    CHECK_INT(write_head(&fixture, 2), 0); /* sequence 4, at offset 0; 3 names segment 1 */
    for (uint64_t bit = 0; bit < 8 * 4096; bit += bit < 800 ? 1 : 97) {
        memory_io_flip_bit(fixture.files, HEAD_PATH, bit);
        CHECK_INT(read_head(&fixture, &head), 0);
        CHECK_INT(head.segment_no, 1);
        CHECK(head.damaged);
        memory_io_flip_bit(fixture.files, HEAD_PATH, bit);
    }
    memory_io_flip_bit(fixture.files, HEAD_PATH, 5000);
    CHECK_INT(write_head(&fixture, 3), 0);
    CHECK_INT(read_head(&fixture, &head), 0);
    CHECK_INT(head.segment_no, 3);
    CHECK_INT(head.sequence, 4);
    CHECK(!head.damaged);
}

TEST(a_page_in_the_other_ones_place_does_not_count)
{
    FIXTURE(fixture, 32768);
    struct mqx_head head;
    unsigned char page[4096];
    uint64_t size = 0;
    CHECK_INT(write_head(&fixture, 2), 0);
    memcpy(page, memory_io_bytes(fixture.files, HEAD_PATH, &size), sizeof page);
    CHECK_INT(size, 8192);
    memory_io_patch(fixture.files, HEAD_PATH, 4096, page, sizeof page);
    CHECK_INT(read_head(&fixture, &head), 0);
    CHECK_INT(head.segment_no, 2);
    CHECK(head.damaged);
    memory_io_flip_bit(fixture.files, HEAD_PATH, 0);
    CHECK_INT(read_head(&fixture, &head), MQRC_OBJECT_DAMAGED);
}

TEST(without_the_file_or_a_good_page_a_start_is_refused_and_the_file_named)
{
    static const struct { uint64_t cut; const char *text; } cases[] = {
        {0, "HEAD"}, {2048, "HEAD"}, {UINT64_MAX, "HEAD: the file is missing"}};
    for (size_t i = 0; i < MQX_ARRAY_COUNT(cases); i++) {
        FIXTURE(fixture, 32768);
        CHECK_INT(fixture_end(&fixture), 0);
        if (cases[i].cut == UINT64_MAX) {
            CHECK(memory_io_remove(fixture.files, HEAD_PATH));
        } else {
            memory_io_cut(fixture.files, HEAD_PATH, cases[i].cut);
        }
        CHECK_INT(fixture_open(&fixture), MQRC_OBJECT_DAMAGED);
        CHECK(strstr(mqx_error_text(), cases[i].text) != NULL);
    }
}

TEST(a_start_writes_a_bad_page_again_and_names_the_same_segment)
{
    FIXTURE(fixture, 32768);
    struct mqx_head head;
    fill_segments(&fixture, 4);
    CHECK_INT(fixture_end(&fixture), 0);
    uint64_t size = 0;
    const struct psh_page *pages =
        (const void *)memory_io_bytes(fixture.files, HEAD_PATH, &size);
    const uint64_t newest = pages[0].sequence > pages[1].sequence ? 0 : 1;
    const uint64_t older = pages[1 - newest].segment_no;
    memory_io_flip_bit(fixture.files, HEAD_PATH, newest * 8 * 4096 + 500);
    CHECK_INT(fixture_open(&fixture), 0);
    CHECK_INT(read_head(&fixture, &head), 0);
    CHECK(!head.damaged);
    CHECK_INT(head.segment_no, older);
}

/* Seen: three files removed, and 20,000 acknowledged messages became 10,800. */
TEST(newest_segments_that_are_missing_are_noticed)
{
    for (uint64_t removed = 1; removed <= 3; removed++) {
        FIXTURE(fixture, 32768);
        fill_segments(&fixture, 6);
        fixture_crash(&fixture);
        for (uint64_t i = 0; i < removed; i++) {
            CHECK(memory_io_remove(fixture.files, fixture_segment_path(6 - i)));
        }
        CHECK_INT(fixture_open(&fixture), MQRC_OBJECT_DAMAGED);
        CHECK(strstr(mqx_error_text(), "journal/0000000006.psj is missing") != NULL);
    }
}

TEST(an_older_file_in_the_place_of_the_newest_segment_is_noticed)
{
    FIXTURE(fixture, 32768);
    fill_segments(&fixture, 3);
    CHECK_INT(write_head(&fixture, 3), 0); /* names generation 13 */
    fixture_crash(&fixture);
    CHECK_INT(fixture_open(&fixture), MQRC_OBJECT_DAMAGED);
    CHECK(strstr(mqx_error_text(), "older file") != NULL);
}

TEST(a_segment_that_is_newer_than_head_says_is_valid)
{
    FIXTURE(fixture, 32768);
    fill_segments(&fixture, 5);
    fixture_crash(&fixture);
    const uint8_t *bytes = memory_io_bytes(fixture.files, HEAD_PATH, &(uint64_t){0});
    const struct psh_page *pages = (const void *)bytes;
    memory_io_flip_bit(fixture.files, HEAD_PATH,
                       pages[0].sequence > pages[1].sequence ? 100 : 8 * 4096 + 100);
    CHECK_INT(fixture_open(&fixture), 0);
}

/* In a roll HEAD is durable before the first batch of the new segment is written. */
TEST(no_batch_is_written_into_a_segment_before_head_names_it)
{
    FIXTURE(fixture, 32768);
    memory_io_record(fixture.files, FIXTURE_HOME);
    fill_segments(&fixture, 5);
    TAKE_TRACE(trace, fixture);
    uint32_t head_file = 0, heads = 0;
    for (uint32_t i = 0; i < trace->start_count; i++) {
        head_file = strcmp(trace->start[i].name, "HEAD") == 0 ? trace->start[i].file : head_file;
    }
    CHECK(head_file != 0);
    uint64_t named = 1;
    for (uint32_t i = 0; i < trace->event_count; i++) {
        const struct memory_event *event = &trace->events[i];
        if (event->kind != MEMORY_EV_DWRITE) {
            continue;
        }
        if (event->file == head_file) {
            struct psh_page page;
            memcpy(&page, event->data, sizeof page); /* a trace's data has any alignment */
            named = page.segment_no;
            heads += 1;
        } else if (event->offset >= 4096) { /* behind the header page */
            struct psj_batch batch;
            memcpy(&batch, event->data, sizeof batch);
            CHECK(batch.segment_no <= named);
        }
    }
    CHECK_INT(heads, 4);
}

TEST(a_head_that_was_removed_is_made_again_by_the_next_roll)
{
    FIXTURE(fixture, 32768);
    fill_segments(&fixture, 2);
    CHECK(memory_io_remove(fixture.files, HEAD_PATH));
    fill_segments(&fixture, 3);
    struct mqx_head head;
    CHECK_INT(read_head(&fixture, &head), 0);
    CHECK_INT(head.segment_no, 3);
}

TEST(a_head_that_cannot_be_opened_is_no_reason_to_stop)
{
    FIXTURE(fixture, 32768);
    struct mqx_head head = {.segment_no = 2, .generation = 2};
    bool unknown = true;
    const struct memory_fault fault = {.kind = MEMORY_FAULT_ERROR, .at = 1, .error = EMFILE,
                                       .ops = 1u << MEMORY_OPEN};
    memory_io_set_fault(fixture.files, &fault);
    CHECK_INT(mqx_head_write(fixture.io, fixture.store.dir, fixture.store.qm_id, &head, &unknown),
              -EMFILE);
    CHECK(!unknown);
    const struct memory_fault flush = {.kind = MEMORY_FAULT_FLUSH, .at = 1, .error = EIO,
                                       .ops = 1u << MEMORY_WRITE};
    memory_io_set_fault(fixture.files, &flush);
    CHECK_INT(mqx_head_write(fixture.io, fixture.store.dir, fixture.store.qm_id, &head, &unknown),
              -EIO);
    CHECK(unknown);
    memory_io_set_fault(fixture.files, NULL);
}

TEST_MAIN()
