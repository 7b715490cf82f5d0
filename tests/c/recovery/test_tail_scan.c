/*
 * test_tail_scan.c - proves tail_scan.h: every end of the journal is exactly one case; a torn tail
 * is dropped, damage is refused, and neither is taken for the other.
 */
#include "fixtures/harness.h"

#include "base/error.h"
#include "fixtures/journal_fixture.h"
#include "recovery/tail_scan.h"

static struct psc_message listed[FIXTURE_LISTED_MAX];
#define FIXTURE FIXTURE_OF

TEST(every_combination_of_tail_facts_fits_exactly_one_case_or_is_impossible)
{
    uint32_t possible = 0;
    for (uint32_t bits = 0; bits < 32; bits++) {
        const struct mqx_tail_facts facts = {
            .has_next = (bits & 1) != 0,
            .at_next = (bits & 2) != 0,
            .below_mark = (bits & 4) != 0,
            .clean_here = (bits & 8) != 0,
            .remains = (bits & 16) != 0,
        };
        uint32_t fitting = 0;
        for (size_t i = 0; i < mqx_tail_case_count; i++) {
            const struct mqx_tail_case *c = &mqx_tail_cases[i];
            const bool fits = (c->has_next < 0 || c->has_next == facts.has_next) &&
                              (c->at_next < 0 || c->at_next == facts.at_next) &&
                              (c->below_mark < 0 || c->below_mark == facts.below_mark) &&
                              (c->clean_here < 0 || c->clean_here == facts.clean_here) &&
                              (c->remains < 0 || c->remains == facts.remains);
            fitting += fits;
        }
        const bool impossible = !facts.has_next && facts.at_next;
        CHECK_INT(fitting, impossible ? 0 : 1);
        CHECK((mqx_tail_decide(&facts) == NULL) == impossible);
        possible += !impossible;
        if (!impossible && !facts.has_next && facts.below_mark) {
            CHECK_INT(mqx_tail_decide(&facts)->verdict, MQX_TAIL_DAMAGE);
        }
    }
    CHECK_INT(possible, 24);
}

TEST(a_torn_last_batch_is_dropped_and_the_next_record_begins_a_new_segment)
{
    FIXTURE(fixture, 65536);
    struct mqx_append append;
    CHECK_INT(fixture_put(&fixture, 0, 1, 4, 100, NULL), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    CHECK_INT(fixture_put(&fixture, 0, 2, 4, 9000, &append), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    fixture_crash(&fixture);
    memory_io_flip_bit(fixture.files, fixture_segment_path(1), (append.lsn + 8500) * 8);
    CHECK_INT(fixture_open(&fixture), 0);
    CHECK_STR(fixture_numbers(&fixture, FIXTURE_QUEUE, listed), "1");
    CHECK(!fixture.report.clean);
    CHECK(fixture.report.torn_bytes > 9000);
    const uint64_t end = fixture.report.end_lsn;
    CHECK_INT(fixture_put(&fixture, 0, 3, 4, 100, &append), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    CHECK_INT(append.lsn, 65536 + 4096 + 64); /* above anything the torn tail could hold */
    uint64_t size = 0;
    const uint8_t *bytes = memory_io_bytes(fixture.files, fixture_segment_path(2), &size);
    CHECK_INT(((const struct psj_segment *)(const void *)bytes)->prev_end_lsn, end);
    for (int crash = 0; crash < 3; crash++) { /* the old torn tail is never taken for damage */
        FIXTURE_REOPEN(fixture);
        CHECK_INT(fixture_put(&fixture, 0, 10 + (uint64_t)crash, 4, 100, NULL), 0);
        CHECK_INT(fixture_flush(&fixture), 0);
    }
    FIXTURE_REOPEN(fixture);
    CHECK_STR(fixture_numbers(&fixture, FIXTURE_QUEUE, listed), "1 3 10 11 12");
}

TEST(a_bad_batch_below_a_mark_is_damage_naming_file_and_offset)
{
    FIXTURE(fixture, 65536);
    struct mqx_append append;
    CHECK_INT(fixture_put(&fixture, 0, 1, 4, 100, &append), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    CHECK_INT(mqx_flush_mark(&fixture.store), 0);
    fixture_crash(&fixture);
    memory_io_flip_bit(fixture.files, fixture_segment_path(1), (append.lsn + 60) * 8);
    CHECK_INT(fixture_open(&fixture), MQRC_OBJECT_DAMAGED);
    CHECK(strstr(mqx_error_text(), "0000000001.psj, offset 4096") != NULL);
}

/* What a flipped bit, a zeroed or a swapped sector in the journal leads to: the right messages, or
 * damage. */
static bool right_or_refused(struct journal_fixture *fixture, const char *want, uint32_t *refused)
{
    int status = fixture_open(fixture);
    if (status == MQRC_OBJECT_DAMAGED) {
        *refused += 1;
        return true;
    }
    bool same = status == 0 && strcmp(fixture_numbers(fixture, FIXTURE_QUEUE, listed), want) == 0;
    const uint32_t count = status == 0 ? fixture_list(fixture, FIXTURE_QUEUE, listed) : 0;
    for (uint32_t i = 0; i < count && same; i++) {
        same = fixture_verify(fixture, &listed[i]);
    }
    fixture_crash(fixture);
    return same;
}

static void fill_marked(struct journal_fixture *fixture)
{
    CHECK_INT(fixture_put(fixture, 0, 1, 4, 100, NULL), 0);
    CHECK_INT(fixture_flush(fixture), 0);
    CHECK_INT(fixture_put(fixture, 0, 2, 5, 5000, NULL), 0);
    CHECK_INT(fixture_put(fixture, 0, 3, 5, 50, NULL), 0);
    CHECK_INT(fixture_flush(fixture), 0);
    CHECK_INT(fixture_record(fixture, 0, PS_REC_GET, 1, NULL), 0);
    CHECK_INT(fixture_flush(fixture), 0);
    CHECK_INT(mqx_flush_mark(&fixture->store), 0);
    fixture_crash(fixture);
}

TEST(no_flipped_bit_in_a_marked_journal_goes_unnoticed)
{
    FIXTURE(fixture, 32768);
    uint32_t refused = 0;
    const uint64_t end = fixture.store.region.journal->batch_start;
    CHECK_INT(end, 4096);
    fill_marked(&fixture);
    for (uint64_t bit = 0; bit < 32768 * 8; bit += bit < 37000 ? 13 : 131) {
        memory_io_flip_bit(fixture.files, fixture_segment_path(1), bit);
        CHECK(right_or_refused(&fixture, "2 3", &refused));
        memory_io_flip_bit(fixture.files, fixture_segment_path(1), bit);
    }
    CHECK(refused > 2000);
}

TEST(no_zeroed_or_swapped_sector_in_a_marked_journal_goes_unnoticed)
{
    FIXTURE(fixture, 32768);
    uint32_t refused = 0;
    static uint8_t a[512], b[512];
    static const uint8_t zeroes[512];
    uint64_t size = 0;
    const char *path = fixture_segment_path(1);
    fill_marked(&fixture);
    for (uint64_t i = 0; i < 64; i++) {
        memcpy(a, memory_io_bytes(fixture.files, path, &size) + i * 512, 512);
        memory_io_patch(fixture.files, path, i * 512, zeroes, 512);
        CHECK(right_or_refused(&fixture, "2 3", &refused));
        for (uint64_t j = i + 1; j < 64; j += 3) {
            memcpy(b, memory_io_bytes(fixture.files, path, &size) + j * 512, 512);
            memory_io_patch(fixture.files, path, i * 512, b, 512);
            memory_io_patch(fixture.files, path, j * 512, a, 512);
            CHECK(right_or_refused(&fixture, "2 3", &refused));
            memory_io_patch(fixture.files, path, j * 512, b, 512);
        }
        memory_io_patch(fixture.files, path, i * 512, a, 512);
    }
    CHECK(refused > 100);
}

TEST_MAIN()
