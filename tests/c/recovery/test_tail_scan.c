/*
 * test_tail_scan.c - proves tail_scan.h: every end of the journal is exactly one case; a torn tail
 * is dropped, damage is refused, and neither is taken for the other.
 */
#include "fixtures/harness.h"

#include "base/error.h"
#include "fixtures/journal_fixture.h"
#include "recovery/tail_scan.h"

static struct psc_message listed[RIG_LISTED_MAX];
#define RIG RIG_OF

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
    RIG(rig, 65536);
    struct mqx_append append;
    CHECK_INT(rig_put(&rig, 0, 1, 4, 100, NULL), 0);
    CHECK_INT(rig_flush(&rig), 0);
    CHECK_INT(rig_put(&rig, 0, 2, 4, 9000, &append), 0);
    CHECK_INT(rig_flush(&rig), 0);
    rig_crash(&rig);
    memory_io_flip_bit(rig.files, rig_segment_path(1), (append.lsn + 8500) * 8);
    CHECK_INT(rig_open(&rig), 0);
    CHECK_STR(rig_numbers(&rig, RIG_QUEUE, listed), "1");
    CHECK(!rig.report.clean);
    CHECK(rig.report.torn_bytes > 9000);
    const uint64_t end = rig.report.end_lsn;
    CHECK_INT(rig_put(&rig, 0, 3, 4, 100, &append), 0);
    CHECK_INT(rig_flush(&rig), 0);
    CHECK_INT(append.lsn, 65536 + 4096 + 64); /* above anything the torn tail could hold */
    uint64_t size = 0;
    const uint8_t *bytes = memory_io_bytes(rig.files, rig_segment_path(2), &size);
    CHECK_INT(((const struct psj_segment *)(const void *)bytes)->prev_end_lsn, end);
    for (int crash = 0; crash < 3; crash++) { /* the old torn tail is never taken for damage */
        RIG_REOPEN(rig);
        CHECK_INT(rig_put(&rig, 0, 10 + (uint64_t)crash, 4, 100, NULL), 0);
        CHECK_INT(rig_flush(&rig), 0);
    }
    RIG_REOPEN(rig);
    CHECK_STR(rig_numbers(&rig, RIG_QUEUE, listed), "1 3 10 11 12");
}

TEST(a_bad_batch_below_a_mark_is_damage_naming_file_and_offset)
{
    RIG(rig, 65536);
    struct mqx_append append;
    CHECK_INT(rig_put(&rig, 0, 1, 4, 100, &append), 0);
    CHECK_INT(rig_flush(&rig), 0);
    CHECK_INT(mqx_flush_mark(&rig.store), 0);
    rig_crash(&rig);
    memory_io_flip_bit(rig.files, rig_segment_path(1), (append.lsn + 60) * 8);
    CHECK_INT(rig_open(&rig), MQRC_OBJECT_DAMAGED);
    CHECK(strstr(mqx_error_text(), "0000000001.psj, offset 4096") != NULL);
}

/* What a flipped bit, a zeroed or a swapped sector in the journal leads to: the right messages, or
 * damage. */
static bool right_or_refused(struct rig *rig, const char *want, uint32_t *refused)
{
    int status = rig_open(rig);
    if (status == MQRC_OBJECT_DAMAGED) {
        *refused += 1;
        return true;
    }
    bool same = status == 0 && strcmp(rig_numbers(rig, RIG_QUEUE, listed), want) == 0;
    const uint32_t count = status == 0 ? rig_list(rig, RIG_QUEUE, listed) : 0;
    for (uint32_t i = 0; i < count && same; i++) {
        same = rig_verify(rig, &listed[i]);
    }
    rig_crash(rig);
    return same;
}

static void fill_marked(struct rig *rig)
{
    CHECK_INT(rig_put(rig, 0, 1, 4, 100, NULL), 0);
    CHECK_INT(rig_flush(rig), 0);
    CHECK_INT(rig_put(rig, 0, 2, 5, 5000, NULL), 0);
    CHECK_INT(rig_put(rig, 0, 3, 5, 50, NULL), 0);
    CHECK_INT(rig_flush(rig), 0);
    CHECK_INT(rig_record(rig, 0, PS_REC_GET, 1, NULL), 0);
    CHECK_INT(rig_flush(rig), 0);
    CHECK_INT(mqx_flush_mark(&rig->store), 0);
    rig_crash(rig);
}

TEST(no_flipped_bit_in_a_marked_journal_goes_unnoticed)
{
    RIG(rig, 32768);
    uint32_t refused = 0;
    const uint64_t end = rig.store.region.journal->batch_start;
    CHECK_INT(end, 4096);
    fill_marked(&rig);
    for (uint64_t bit = 0; bit < 32768 * 8; bit += bit < 37000 ? 13 : 131) {
        memory_io_flip_bit(rig.files, rig_segment_path(1), bit);
        CHECK(right_or_refused(&rig, "2 3", &refused));
        memory_io_flip_bit(rig.files, rig_segment_path(1), bit);
    }
    CHECK(refused > 2000);
}

TEST(no_zeroed_or_swapped_sector_in_a_marked_journal_goes_unnoticed)
{
    RIG(rig, 32768);
    uint32_t refused = 0;
    static uint8_t a[512], b[512];
    static const uint8_t zeroes[512];
    uint64_t size = 0;
    const char *path = rig_segment_path(1);
    fill_marked(&rig);
    for (uint64_t i = 0; i < 64; i++) {
        memcpy(a, memory_io_bytes(rig.files, path, &size) + i * 512, 512);
        memory_io_patch(rig.files, path, i * 512, zeroes, 512);
        CHECK(right_or_refused(&rig, "2 3", &refused));
        for (uint64_t j = i + 1; j < 64; j += 3) {
            memcpy(b, memory_io_bytes(rig.files, path, &size) + j * 512, 512);
            memory_io_patch(rig.files, path, i * 512, b, 512);
            memory_io_patch(rig.files, path, j * 512, a, 512);
            CHECK(right_or_refused(&rig, "2 3", &refused));
            memory_io_patch(rig.files, path, j * 512, b, 512);
        }
        memory_io_patch(rig.files, path, i * 512, a, 512);
    }
    CHECK(refused > 100);
}

TEST_MAIN()
