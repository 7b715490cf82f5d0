/*
 * test_segment_pool.c - proves the segment files of journal.h: spares are made and used, within
 * the limit; a roll that is interrupted at any step is finished.
 */
#include "fixtures/harness.h"

#include "base/error.h"
#include "fixtures/disk_states.h"
#include "fixtures/journal_fixture.h"
#include "format/segment.h"
#include "journal/head_file.h"
#include "journal/journal_private.h"
#include "penstock/journal_scan.h"

static struct psc_message listed[FIXTURE_LISTED_MAX];
#define FIXTURE FIXTURE_OF

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

TEST(a_full_disk_stops_puts_and_space_lets_them_go_on)
{
    FIXTURE(fixture, 32768);
    int status = 0;
    uint64_t number = 1;
    memory_io_set_space(fixture.files, 100000, UINT64_MAX);
    while (status == 0) {
        status = fixture_put(&fixture, 0, number++, 4, 1000, NULL);
        CHECK(number < 1000);
    }
    CHECK_INT(status, MQRC_STORAGE_MEDIUM_FULL);
    CHECK_INT(fixture_record(&fixture, 0, PS_REC_GET, 1, NULL), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    memory_io_set_space(fixture.files, UINT64_MAX, UINT64_MAX);
    CHECK_INT(fixture_put(&fixture, 0, number, 4, 1000, NULL), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    fixture_crash(&fixture);
    CHECK_INT(fixture_open(&fixture), 0);
    CHECK_INT(fixture_list(&fixture, FIXTURE_QUEUE, listed), number - 2);
}

/* Durable puts while the active segment has less than that many bytes. */
static void fill_to(struct journal_fixture *fixture, uint64_t bytes, uint64_t number)
{
    const struct mqx_journal *journal = fixture->store.region.journal;
    const uint64_t base = journal->segment[journal->active - 1].base_lsn;
    while (journal->tail - base < bytes) {
        CHECK_INT(fixture_put(fixture, 0, number++, 4, 1000, NULL), 0);
        CHECK_INT(fixture_flush(fixture), 0);
    }
}

TEST(spares_are_made_ahead_within_the_limit)
{
    FIXTURE(fixture, 65536);
    struct mqx_journal *journal = fixture.store.region.journal;
    fill_to(&fixture, 65536 / 2 + 1, 1);
    CHECK_INT(mqx_journal_spare_wanted(&fixture.store), 65536);
    CHECK_INT(mqx_journal_make_spare(&fixture.store, 65536), 0);
    CHECK_INT(mqx_journal_spare_count(&fixture.store), 1);
    CHECK_INT(mqx_journal_spare_wanted(&fixture.store), 0);
    journal->limit = journal->used_bytes;
    CHECK_INT(mqx_journal_make_spare(&fixture.store, 65536), MQRC_STORAGE_MEDIUM_FULL);
    CHECK_INT(mqx_journal_spare_count(&fixture.store), 1);
    fixture_crash(&fixture);
    CHECK_INT(fixture_open(&fixture), 0); /* and they are found again */
    CHECK_INT(mqx_journal_spare_count(&fixture.store), 1);
}

enum { SMALL = 65536, FULL = 8 * SMALL };

/* A new queue manager whose first segment is smaller than the others will be. */
static void make_small(struct journal_fixture *fixture)
{
    struct mqx_region_plan plan = fixture_plan(FULL);
    plan.first_segment_size = SMALL;
    fixture_create(fixture, &plan);
    CHECK_INT(fixture_open(fixture), 0);
    CHECK_INT(fixture_define(fixture, FIXTURE_QUEUE, FIXTURE_GENERATION), 0);
}

TEST(a_new_journal_wants_a_spare_twice_as_long_once_half_of_its_first_segment_is_used)
{
    __attribute__((cleanup(fixture_free))) struct journal_fixture fixture;
    make_small(&fixture);
    CHECK_INT(mqx_journal_spare_wanted(&fixture.store), 0);
    fill_to(&fixture, SMALL / 2 - 4096, 100);
    CHECK_INT(mqx_journal_spare_wanted(&fixture.store), 0);
    fill_to(&fixture, SMALL / 2 + 1, 200);
    CHECK_INT(mqx_journal_spare_wanted(&fixture.store), 2 * SMALL);
    CHECK_INT(mqx_journal_make_spare(&fixture.store, 2 * SMALL), 0);
    CHECK_INT(mqx_journal_spare_wanted(&fixture.store), 0);
}

TEST(a_journal_that_has_been_written_to_wants_the_next_spare_as_soon_as_it_takes_one)
{
    __attribute__((cleanup(fixture_free))) struct journal_fixture fixture;
    make_small(&fixture);
    const struct mqx_journal *journal = fixture.store.region.journal;
    fill_to(&fixture, SMALL / 2 + 1, 100);
    for (uint64_t size = 2 * SMALL; size <= 2 * FULL; size *= 2) {
        const uint64_t expected = size < FULL ? size : FULL;
        CHECK_INT(mqx_journal_spare_wanted(&fixture.store), expected);
        CHECK_INT(mqx_journal_make_spare(&fixture.store, expected), 0);
        fill_segments(&fixture, journal->next_segment_no);
        CHECK_INT(journal->segment[journal->active - 1].size, expected);
        CHECK(journal->tail - journal->segment[journal->active - 1].base_lsn < expected / 4);
    }
    FIXTURE_REOPEN(fixture); /* what was written before does not count */
    CHECK_INT(fixture_put(&fixture, 0, 1, 4, 1000, NULL), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    CHECK_INT(journal->segment[journal->active - 1].size, SMALL);
    CHECK_INT(mqx_journal_spare_wanted(&fixture.store), 0);
}

TEST(a_small_limit_has_smaller_segments)
{
    __attribute__((cleanup(fixture_free))) struct journal_fixture fixture;
    make_small(&fixture);
    struct mqx_journal *journal = fixture.store.region.journal;
    CHECK_INT(mqx_journal_largest_segment(journal), FULL);
    journal->limit = 16 * 4 * SMALL + 4096;
    CHECK_INT(mqx_journal_largest_segment(journal), 4 * SMALL);
    journal->limit = 4 * SMALL;
    CHECK_INT(mqx_journal_largest_segment(journal), SMALL);
}

/* The size of the spare that a put makes which lacks so much room. */
static uint64_t size_of_room_for(uint64_t reserve, uint64_t limit)
{
    __attribute__((cleanup(fixture_free))) struct journal_fixture fixture;
    make_small(&fixture);
    struct mqx_journal *journal = fixture.store.region.journal;
    journal->limit = limit;
    const uint64_t before = journal->used_bytes;
    mqx_store_release(&journal->reserve_bytes, reserve);
    CHECK_INT(mqx_journal_make_room(&fixture.store, 1000), 0);
    CHECK_INT(mqx_journal_spare_count(&fixture.store), 1);
    return journal->used_bytes - before;
}

TEST(a_put_that_lacks_room_makes_a_segment_that_has_it_within_what_a_small_limit_has)
{
    enum { LARGE = 1000 * FULL };
    CHECK_INT(size_of_room_for(SMALL - 4000, LARGE), 2 * SMALL);
    CHECK_INT(size_of_room_for(3 * SMALL, LARGE), 4 * SMALL);
    CHECK_INT(size_of_room_for(9 * SMALL, LARGE), FULL);
    CHECK_INT(size_of_room_for(9 * SMALL, 16 * 2 * SMALL), 2 * SMALL);
    CHECK_INT(size_of_room_for(9 * SMALL, 2 * SMALL), SMALL);
}

/* Of the segments behind each other, beginning with `first`. */
static void expect_sizes(const struct journal_fixture *fixture, uint64_t first,
                         const uint64_t *sizes, int count)
{
    const struct mqx_journal *journal = fixture->store.region.journal;
    for (int i = 0; i < MQX_SEGMENT_MAX; i++) {
        const struct mqx_segment *segment = &journal->segment[i];
        if (segment->number >= first && segment->number < first + (uint64_t)count) {
            CHECK_INT(segment->size, sizes[segment->number - first]);
        }
    }
}

TEST(segments_that_appends_make_themselves_double_and_begin_small_behind_one_of_full_size)
{
    static const uint64_t sizes[] = {SMALL, 2 * SMALL, 4 * SMALL, FULL, SMALL, 2 * SMALL};
    __attribute__((cleanup(fixture_free))) struct journal_fixture fixture;
    make_small(&fixture);
    fill_segments(&fixture, 6);
    expect_sizes(&fixture, 1, sizes, 6);
}

TEST(an_append_makes_a_short_segment_where_the_disk_has_no_room_for_a_longer_one)
{
    static const uint64_t sizes[] = {SMALL, 2 * SMALL, SMALL};
    __attribute__((cleanup(fixture_free))) struct journal_fixture fixture;
    make_small(&fixture);
    fill_segments(&fixture, 2);
    memory_io_set_space(fixture.files, 6 * SMALL, UINT64_MAX); /* of which a half is used */
    fill_segments(&fixture, 3);
    expect_sizes(&fixture, 1, sizes, 3);
}

/* Two segments of full size were written. */
static void make_stream(struct journal_fixture *fixture)
{
    const struct mqx_journal *journal = fixture->store.region.journal;
    const uint64_t end = journal->start_lsn + 2 * FULL;
    while (journal->segment[journal->active - 1].base_lsn < end) {
        const uint64_t wanted = mqx_journal_spare_wanted(&fixture->store);
        CHECK(wanted <= 2 * journal->segment[journal->active - 1].size);
        fill_segments(fixture, journal->next_segment_no);
    }
    CHECK_INT(mqx_journal_spare_count(&fixture->store), 0);
}

TEST(a_stream_has_three_spares_of_full_size_ahead)
{
    __attribute__((cleanup(fixture_free))) struct journal_fixture fixture;
    make_small(&fixture);
    make_stream(&fixture);
    for (int made = 0; made < 3; made++) {
        CHECK_INT(mqx_journal_spare_wanted(&fixture.store), FULL);
        CHECK_INT(mqx_journal_make_spare(&fixture.store, FULL), 0);
    }
    CHECK_INT(mqx_journal_spare_wanted(&fixture.store), 0);
}

TEST(a_stream_has_one_spare_ahead_behind_a_full_disk_and_beyond_half_of_the_limit)
{
    __attribute__((cleanup(fixture_free))) struct journal_fixture fixture;
    make_small(&fixture);
    make_stream(&fixture);
    struct mqx_journal *journal = fixture.store.region.journal;
    CHECK_INT(mqx_journal_make_spare(&fixture.store, FULL), 0);
    mqx_store_relaxed(&journal->disk_full, 1u);
    CHECK_INT(mqx_journal_spare_wanted(&fixture.store), 0);
    mqx_store_relaxed(&journal->disk_full, 0u);
    CHECK_INT(mqx_journal_spare_wanted(&fixture.store), FULL);
    journal->limit = 16 * FULL;
    CHECK_INT(mqx_journal_spare_wanted(&fixture.store), FULL);
    while (journal->used_bytes <= journal->limit / 2) {
        fill_segments(&fixture, journal->next_segment_no);
    }
    CHECK_INT(mqx_journal_spare_count(&fixture.store), 0);
    CHECK_INT(mqx_journal_spare_wanted(&fixture.store), FULL);
    CHECK_INT(mqx_journal_make_spare(&fixture.store, FULL), 0);
    CHECK_INT(mqx_journal_spare_wanted(&fixture.store), 0);
}

TEST(a_restart_uses_a_spare_of_a_size_in_between_and_removes_others)
{
    __attribute__((cleanup(fixture_free))) struct journal_fixture fixture;
    make_small(&fixture);
    CHECK_INT(mqx_journal_make_spare(&fixture.store, 2 * SMALL), 0);
    CHECK_INT(mqx_journal_make_spare(&fixture.store, SMALL / 2), 0);
    CHECK_INT(mqx_journal_make_spare(&fixture.store, 2 * FULL), 0);
    CHECK_INT(mqx_journal_spare_count(&fixture.store), 3);
    fixture_crash(&fixture);
    CHECK_INT(fixture_open(&fixture), 0);
    CHECK_INT(mqx_journal_spare_count(&fixture.store), 1);
    fill_segments(&fixture, 2);
    const struct mqx_journal *journal = fixture.store.region.journal;
    CHECK_INT(journal->segment[journal->active - 1].size, 2 * SMALL);
}

TEST(a_full_size_segment_too_is_followed_by_a_spare_once_half_of_it_is_used)
{
    FIXTURE(fixture, FULL);
    CHECK_INT(mqx_journal_spare_wanted(&fixture.store), 0);
    fill_to(&fixture, FULL / 2 - 4096, 100);
    CHECK_INT(mqx_journal_spare_wanted(&fixture.store), 0);
    fill_to(&fixture, FULL / 2 + 1, 1000);
    CHECK_INT(mqx_journal_spare_wanted(&fixture.store), FULL);
}

TEST(a_journal_that_lacks_its_reserve_wants_a_spare_however_little_is_used)
{
    __attribute__((cleanup(fixture_free))) struct journal_fixture fixture;
    make_small(&fixture);
    struct mqx_journal *journal = fixture.store.region.journal;
    mqx_store_release(&journal->reserve_bytes, (uint64_t)SMALL / 2);
    CHECK_INT(mqx_journal_spare_wanted(&fixture.store), SMALL);
    mqx_store_release(&journal->reserve_bytes, (uint64_t)SMALL);
    CHECK_INT(mqx_journal_spare_wanted(&fixture.store), 2 * SMALL);
    mqx_store_release(&journal->reserve_bytes, (uint64_t)3 * SMALL);
    CHECK_INT(mqx_journal_spare_wanted(&fixture.store), FULL);
    mqx_store_release(&journal->reserve_bytes, (uint64_t)FULL);
    CHECK_INT(mqx_journal_spare_wanted(&fixture.store), FULL);
}

TEST(a_first_segment_closed_by_a_restart_wants_a_small_spare)
{
    __attribute__((cleanup(fixture_free))) struct journal_fixture fixture;
    make_small(&fixture);
    CHECK_INT(fixture_put(&fixture, 0, 1, 4, 1000, NULL), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    FIXTURE_REOPEN(fixture);
    const struct mqx_journal *journal = fixture.store.region.journal;
    CHECK_INT(journal->segment[journal->active - 1].state, MQX_SEG_FULL);
    CHECK_INT(mqx_journal_spare_wanted(&fixture.store), SMALL);
}

TEST(a_roll_that_takes_the_last_spare_rings_the_maintenance_thread)
{
    FIXTURE(fixture, 32768);
    const struct mqx_region *region = &fixture.store.region;
    const uint32_t *doorbell = &mqx_process_slot(region, region->process)->doorbell;
    CHECK_INT(mqx_journal_make_spare(&fixture.store, 32768), 0);
    CHECK_INT(mqx_journal_make_spare(&fixture.store, 32768), 0);
    const uint32_t before = *doorbell;
    fill_segments(&fixture, 2);
    CHECK_INT(mqx_journal_spare_count(&fixture.store), 1);
    CHECK_INT(*doorbell, before);
    fill_segments(&fixture, 3);
    CHECK_INT(mqx_journal_spare_count(&fixture.store), 0);
    CHECK_INT(*doorbell, before + 1);
}

/* A hook that leaves at the n-th call of the file table, as if the process had died there. */
struct leaving {
    uint64_t at;
    uint64_t calls;
    jmp_buf out;
};

static void leave(void *arg, enum memory_op op, uint64_t number)
{
    struct leaving *leaving = arg;
    (void)op;
    (void)number;
    if (++leaving->calls == leaving->at) {
        longjmp(leaving->out, 1);
    }
}

/* Locks that the dead owner held are repaired as EOWNERDEAD would do it. */
static void repair(struct mqx_region *region, struct mqx_lock *lock)
{
    if (lock->holder == region->process + 1) {
        mqx_undo_rollback(region, lock);
        mqx_lock_drop(region, lock);
    }
}

TEST(a_roll_is_finished_by_the_next_process_whatever_step_the_first_one_died_at)
{
    static struct leaving leaving; /* survives the longjmp */
    static uint64_t at;
    for (at = 1; at < 40; at++) {
        FIXTURE(fixture, 32768);
        CHECK_INT(mqx_journal_make_spare(&fixture.store, 32768), 0);
        struct mqx_journal *journal = fixture.store.region.journal;
        for (uint64_t number = 1; number <= 6; number++) {
            CHECK_INT(fixture_put(&fixture, 0, number, 4, 3500, NULL), 0);
        }
        CHECK_INT(fixture_flush(&fixture), 0);
        leaving = (struct leaving){.at = at};
        memory_io_set_hook(fixture.files, leave, &leaving);
        volatile int status = 0;
        if (setjmp(leaving.out) == 0) {
            for (uint64_t number = 7; number <= 12 && status == 0; number++) {
                status = fixture_put(&fixture, 0, number, 4, 3500, NULL);
            }
        }
        memory_io_set_hook(fixture.files, NULL, NULL);
        CHECK_INT(status, 0);
        repair(&fixture.store.region, &journal->ring_lock);
        repair(&fixture.store.region, &journal->roll_lock);
        repair(&fixture.store.region, &journal->flush_lock);
        CHECK_INT(fixture_put(&fixture, 0, 13, 4, 20000, NULL), 0);
        CHECK_INT(fixture_flush(&fixture), 0);
        fixture_crash(&fixture);
        CHECK_INT(fixture_open(&fixture), 0);
        const uint32_t count = fixture_list(&fixture, FIXTURE_QUEUE, listed);
        CHECK(count >= 7);
        for (uint32_t i = 0; i < count; i++) {
            CHECK(fixture_verify(&fixture, &listed[i]));
        }
        CHECK_INT(listed[count - 1].number, 13);
        if (leaving.calls < at) {
            break; /* nothing was interrupted any more */
        }
    }
    CHECK(at > 6); /* flush; open, header, close, name, directory */
    CHECK(at < 40);
}

TEST(file_names_are_recognised_only_in_their_own_spelling)
{
    uint64_t number = 0;
    CHECK_INT(mqx_file_kind_of("0000000012.psj", &number), MQX_FILE_SEGMENT);
    CHECK_INT(number, 12);
    CHECK_INT(mqx_file_kind_of("spare-0000000003.psj", &number), MQX_FILE_SPARE);
    CHECK_INT(mqx_file_kind_of("spare-0000000003.tmp", &number), MQX_FILE_HALF_MADE);
    CHECK_INT(mqx_file_kind_of("12.psj", &number), MQX_FILE_OTHER);
    CHECK_INT(mqx_file_kind_of("00000000012.psj", &number), MQX_FILE_OTHER);
    CHECK_INT(mqx_file_kind_of("0000000012.psjx", &number), MQX_FILE_OTHER);
    CHECK_INT(mqx_file_kind_of("spare-.psj", &number), MQX_FILE_OTHER);
    CHECK_INT(mqx_file_kind_of("-000000012.psj", &number), MQX_FILE_OTHER);
    CHECK_INT(mqx_file_kind_of("", &number), MQX_FILE_OTHER);
}

TEST_MAIN()
