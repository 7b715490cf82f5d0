/* Claims of backup.h: a copy of what is pinned restarts as the queue manager was at the begin. */
#include "fixtures/harness.h"
#include "base/error.h"
#include "fixtures/journal_fixture.h"
#include "recovery/backup.h"

enum { SEGMENT = 32768 };

TEST(the_begin_covers_everything_that_was_flushed_and_a_checkpoint_is_not_newer)
{
    FIXTURE_OF(fixture, SEGMENT);
    struct mqx_pinned pinned = {0};
    uint64_t checkpoint_lsn = 0;
    struct mqx_append append = {0};
    for (uint64_t number = 1; number <= 20; number++) {
        CHECK_INT(fixture_put(&fixture, 0, number, 4, 3000, NULL), 0);
    }
    CHECK_INT(fixture_flush(&fixture), 0);
    FIXTURE_REOPEN(fixture); /* the fixture's records change the files alone */
    CHECK_INT(fixture_record(&fixture, 0, PS_REC_GET, 900, &append), 0);
    CHECK(mqx_journal_durable(fixture.store.region.journal) <= append.lsn);
    CHECK_INT(mqx_backup_begin(&fixture.store, &pinned, &checkpoint_lsn), 0);
    CHECK(pinned.end_lsn > append.lsn); /* flushed by it */
    CHECK(checkpoint_lsn != 0 && checkpoint_lsn <= pinned.end_lsn);
    CHECK_INT(fixture.store.region.journal->pin.owner, fixture.store.region.process + 1);
}

TEST(a_backup_that_cannot_begin_pins_nothing)
{
    FIXTURE_OF(fixture, SEGMENT);
    struct mqx_pinned pinned = {0};
    uint64_t checkpoint_lsn = 0;
    const struct memory_fault no_space = {.kind = MEMORY_FAULT_ERROR, .at = 1, .error = 28,
                                          .for_ever = true, .ops = 1u << MEMORY_RENAME};
    FIXTURE_REOPEN(fixture);
    CHECK_INT(fixture_record(&fixture, 0, PS_REC_GET, 900, NULL), 0);
    memory_io_set_fault(fixture.files, &no_space);
    CHECK(mqx_backup_begin(&fixture.store, &pinned, &checkpoint_lsn) != 0);
    CHECK_INT(fixture.store.region.journal->pin.owner, 0);
    memory_io_set_fault(fixture.files, NULL);
    CHECK_INT(mqx_backup_begin(&fixture.store, &pinned, &checkpoint_lsn), 0);
}

TEST_MAIN()
