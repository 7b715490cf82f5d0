/* Claims of segment_pin.h: what is pinned stays, and is let go again in every case. */
#include "fixtures/harness.h"
#include "base/error.h"
#include "fixtures/journal_fixture.h"
#include "journal/journal_private.h"
#include "journal/segment_pin.h"

enum { SEGMENT = 32768 };

static const uint32_t nothing_alive[MQX_SEGMENT_MAX];

static void put_and_get(struct journal_fixture *fixture, uint64_t from, uint64_t to)
{
    for (uint64_t number = from; number < to; number++) {
        CHECK_INT(fixture_put(fixture, 0, number, 4, 3000, NULL), 0);
        CHECK_INT(fixture_record(fixture, 0, PS_REC_GET, number, NULL), 0);
    }
    CHECK_INT(fixture_flush(fixture), 0);
}

static uint64_t newest(const struct journal_fixture *fixture)
{
    const struct mqx_journal *journal = fixture->store.region.journal;
    return journal->segment[journal->active - 1].number;
}

/* The oldest segment that is left when everything that may be retired is. */
static uint64_t oldest_after_retiring(struct journal_fixture *fixture)
{
    const struct mqx_journal *journal = fixture->store.region.journal;
    uint64_t size = 0;
    CHECK_INT(mqx_journal_retire(&fixture->store, newest(fixture), journal->batch_start,
                                 nothing_alive),
              0);
    for (uint64_t number = 1; number <= newest(fixture); number++) {
        if (memory_io_bytes(fixture->files, fixture_segment_path(number), &size) != NULL) {
            return number;
        }
    }
    return 0;
}

TEST(pinned_segments_are_kept_until_they_are_copied_or_the_pin_ends)
{
    FIXTURE_OF(fixture, SEGMENT);
    struct mqx_pinned pinned = {0};
    uint32_t process = 0;
    put_and_get(&fixture, 1, 60);
    CHECK_INT(mqx_pin_begin(&fixture.store, &pinned), 0);
    CHECK_INT(pinned.first, 1);
    CHECK_INT(pinned.last, newest(&fixture));
    CHECK_INT(pinned.end_lsn, mqx_journal_durable(fixture.store.region.journal));
    CHECK_INT(mqx_pin_bytes(fixture.store.region.journal, &process), pinned.last * SEGMENT);
    CHECK_INT(process, fixture.store.region.process);
    put_and_get(&fixture, 60, 90);
    CHECK_INT(oldest_after_retiring(&fixture), 1);
    CHECK_INT(mqx_pin_advance(&fixture.store, 3), 0);
    CHECK_INT(mqx_pin_advance(&fixture.store, 2), 0); /* never back */
    CHECK_INT(oldest_after_retiring(&fixture), 3);
    CHECK_INT(mqx_pin_advance(&fixture.store, pinned.last + 1), 0);
    CHECK_INT(oldest_after_retiring(&fixture), newest(&fixture));
    CHECK_INT(mqx_pin_bytes(fixture.store.region.journal, &process), 0);
    CHECK_INT(mqx_pin_end(&fixture.store, fixture.store.region.process), 0);
    CHECK_INT(fixture.store.region.journal->pin.owner, 0);
}

TEST(later_segments_are_not_pinned)
{
    FIXTURE_OF(fixture, SEGMENT);
    struct mqx_pinned pinned = {0};
    uint64_t size = 0;
    put_and_get(&fixture, 1, 20);
    CHECK_INT(mqx_pin_begin(&fixture.store, &pinned), 0);
    put_and_get(&fixture, 20, 90);
    CHECK(newest(&fixture) > pinned.last + 2);
    CHECK_INT(oldest_after_retiring(&fixture), 1);
    CHECK(memory_io_bytes(fixture.files, fixture_segment_path(pinned.last), &size) != NULL);
    CHECK(memory_io_bytes(fixture.files, fixture_segment_path(pinned.last + 1), &size) == NULL);
}

TEST(there_is_one_backup_at_a_time_and_only_its_process_ends_it)
{
    FIXTURE_OF(fixture, SEGMENT);
    struct mqx_pinned pinned = {0}, other = {0};
    put_and_get(&fixture, 1, 20);
    CHECK_INT(mqx_pin_begin(&fixture.store, &pinned), 0);
    CHECK_INT(mqx_pin_begin(&fixture.store, &other), MQRC_OBJECT_IN_USE);
    CHECK_INT(mqx_pin_end(&fixture.store, fixture.store.region.process + 1), 0);
    CHECK_INT(mqx_pin_advance(&fixture.store, 1), 0);
    CHECK_INT(mqx_pin_end(&fixture.store, fixture.store.region.process), 0);
    CHECK_INT(mqx_pin_advance(&fixture.store, 1), MQRC_STORAGE_MEDIUM_FULL);
    CHECK_INT(mqx_pin_begin(&fixture.store, &other), 0);
}

TEST(at_80_percent_of_the_limit_the_pin_is_broken_and_the_backup_told)
{
    FIXTURE_OF(fixture, SEGMENT);
    struct mqx_journal *journal = fixture.store.region.journal;
    struct mqx_pinned pinned = {0};
    put_and_get(&fixture, 1, 30);
    CHECK_INT(mqx_pin_begin(&fixture.store, &pinned), 0);
    journal->limit = journal->used_bytes / 4 * 5 + 10;
    CHECK_INT(oldest_after_retiring(&fixture), 1); /* 80 % and not more */
    journal->limit = journal->used_bytes / 4 * 5 - SEGMENT;
    CHECK_INT(oldest_after_retiring(&fixture), newest(&fixture));
    CHECK_INT(mqx_pin_advance(&fixture.store, 2), MQRC_STORAGE_MEDIUM_FULL);
    CHECK(strstr(mqx_error_text(), "broken off") != NULL);
    CHECK_INT(mqx_pin_end(&fixture.store, fixture.store.region.process), 0);
    CHECK_INT(mqx_pin_begin(&fixture.store, &pinned), 0); /* it can be tried again */
    CHECK_INT(mqx_pin_advance(&fixture.store, 1), 0);
}

TEST(a_segment_in_which_nothing_was_written_ends_behind_its_header)
{
    FIXTURE_OF(fixture, SEGMENT);
    struct mqx_pinned pinned = {0};
    CHECK_INT(fixture_flush(&fixture), 0);
    FIXTURE_REOPEN(fixture);
    CHECK_INT(mqx_pin_begin(&fixture.store, &pinned), 0);
    const struct mqx_journal *journal = fixture.store.region.journal;
    const struct mqx_segment *active = &journal->segment[journal->active - 1];
    CHECK(pinned.end_lsn >= active->base_lsn + MQX_PAGE_SIZE);
    CHECK_INT(pinned.last_generation, active->generation);
}

TEST_MAIN()
