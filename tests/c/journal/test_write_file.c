/*
 * test_write_file.c - claims of write_file.h: the journal goes into its own file or nowhere, and a
 * journal that was taken away is noticed before the next flush.
 */
#include "fixtures/harness.h"

#include "base/error.h"
#include "fixtures/journal_fixture.h"
#include "journal/group_commit.h"
#include "journal/leadership.h"
#include "journal/write_file.h"

#define FIXTURE FIXTURE_OF

static int put_and_flush(struct journal_fixture *fixture, uint64_t number)
{
    const int status = fixture_put(fixture, 0, number, 4, 100, NULL);
    return status == 0 ? fixture_flush(fixture) : status;
}

/* The program closes the descriptor; its number goes to a file of the program. */
static int replace_write_fd(struct journal_fixture *fixture)
{
    const struct mqx_io_ops *ops = fixture->io->ops;
    const int fd = fixture->store.files->write.fd;
    memory_io_make_dirs(fixture->files, "/program");
    const int dir = ops->open_dir(fixture->io, "/program");
    CHECK(dir >= 0);
    CHECK_INT(ops->close(fixture->io, fd), 0);
    const int own = ops->open(fixture->io, dir, "own", MQX_IO_WRITE | MQX_IO_CREATE, 0600);
    CHECK_INT(own, fd); /* the lowest free number */
    CHECK_INT(ops->close(fixture->io, dir), 0);
    return own;
}

TEST(each_flush_looks_at_its_file_once_and_opens_it_once)
{
    FIXTURE(fixture, 262144);
    CHECK_INT(put_and_flush(&fixture, 1), 0);
    const uint64_t stats = memory_io_calls(fixture.files, MEMORY_STAT);
    const uint64_t opens = memory_io_calls(fixture.files, MEMORY_OPEN);
    for (uint64_t n = 2; n < 12; n++) {
        CHECK_INT(put_and_flush(&fixture, n), 0);
    }
    CHECK_INT(memory_io_calls(fixture.files, MEMORY_STAT), stats + 10);
    CHECK_INT(memory_io_calls(fixture.files, MEMORY_OPEN), opens);
}

TEST(a_closed_descriptor_is_opened_again_by_its_name)
{
    FIXTURE(fixture, 262144);
    CHECK_INT(put_and_flush(&fixture, 1), 0);
    const int own = replace_write_fd(&fixture);
    CHECK_INT(put_and_flush(&fixture, 2), 0);
    CHECK_INT(mqx_region_stopped(&fixture.store.region), MQX_RUNNING);
    uint64_t size = 1;
    CHECK(memory_io_bytes(fixture.files, "/program/own", &size) != NULL);
    CHECK_INT(size, 0); /* nothing went into the program's file */
    CHECK_INT(fixture.io->ops->close(fixture.io, own), 0); /* and it is still open */
}

TEST(a_name_that_leads_to_another_file_is_not_written)
{
    FIXTURE(fixture, 262144);
    static uint8_t other[262144];
    CHECK_INT(put_and_flush(&fixture, 1), 0);
    CHECK_INT(fixture.io->ops->close(fixture.io, fixture.store.files->write.fd), 0);
    CHECK(memory_io_remove(fixture.files, fixture_segment_path(1)));
    memory_io_put(fixture.files, fixture_segment_path(1), other, sizeof other);
    CHECK_INT(put_and_flush(&fixture, 2), MQRC_CONNECTION_BROKEN);
    CHECK(strstr(mqx_error_text(), "looking at the active journal segment") != NULL);
    uint64_t size = 0;
    const uint8_t *bytes = memory_io_bytes(fixture.files, fixture_segment_path(1), &size);
    for (uint64_t i = 0; i < size; i++) {
        CHECK_INT(bytes[i], 0);
    }
}

TEST(a_removed_segment_stops_the_next_flush_before_it_writes)
{
    FIXTURE(fixture, 262144);
    CHECK_INT(put_and_flush(&fixture, 1), 0);
    const uint64_t writes = memory_io_calls(fixture.files, MEMORY_WRITE);
    CHECK(memory_io_remove(fixture.files, fixture_segment_path(1)));
    CHECK_INT(put_and_flush(&fixture, 2), MQRC_CONNECTION_BROKEN);
    CHECK(strstr(mqx_error_text(), "journal/0000000001.psj was removed") != NULL);
    CHECK_INT(memory_io_calls(fixture.files, MEMORY_WRITE), writes);
    char cause[MQX_STOP_TEXT];
    CHECK(mqx_region_stop_cause(&fixture.store.region, cause));
    CHECK(strstr(cause, "the active journal segment was removed") != NULL);
}

TEST(a_segment_that_was_cut_short_stops_the_next_flush_before_it_writes)
{
    FIXTURE(fixture, 262144);
    CHECK_INT(put_and_flush(&fixture, 1), 0);
    const uint64_t writes = memory_io_calls(fixture.files, MEMORY_WRITE);
    memory_io_cut(fixture.files, fixture_segment_path(1), 131072);
    CHECK_INT(put_and_flush(&fixture, 2), MQRC_CONNECTION_BROKEN);
    CHECK(strstr(mqx_error_text(), "was cut short") != NULL);
    CHECK_INT(memory_io_calls(fixture.files, MEMORY_WRITE), writes);
}

TEST(the_next_segment_is_opened_before_the_last_one_is_closed)
{
    FIXTURE(fixture, 32768);
    struct mqx_region *region = &fixture.store.region;
    int fd = -1;
    for (uint64_t n = 1; region->journal->active < 3; n++) {
        CHECK_INT(put_and_flush(&fixture, n), 0);
        CHECK(n < 100);
    }
    const int last = fixture.store.files->write.fd;
    const struct memory_fault fault = {.kind = MEMORY_FAULT_ERROR, .at = 1, .for_ever = true,
                                       .ops = 1u << MEMORY_OPEN, .error = 24};
    memory_io_set_fault(fixture.files, &fault);
    CHECK_INT(mqx_lock_take(region, &region->journal->flush_lock), 0);
    CHECK_INT(mqx_write_file(&fixture.store, 0, &fd), MQX_CANNOT_LEAD);
    CHECK_INT(fixture.store.files->write.fd, last); /* it has kept what it had */
    memory_io_set_fault(fixture.files, NULL);
    CHECK_INT(mqx_write_file(&fixture.store, 0, &fd), 0);
    CHECK(fd >= 0 && fd != last);
    mqx_lock_drop(region, &region->journal->flush_lock);
}

TEST(kept_descriptors_are_lent_one_by_one_and_kept_again_and_never_twice)
{
    FIXTURE(fixture, 262144);
    const uint32_t open = memory_io_open_count(fixture.files);
    CHECK(fixture.store.files->kept_fd[0] >= 0);
    mqx_journal_keep_fd(&fixture.store);
    CHECK_INT(memory_io_open_count(fixture.files), open);
    mqx_journal_lend_fd(&fixture.store);
    CHECK_INT(memory_io_open_count(fixture.files), open - 1);
    for (int i = 0; i < 2; i++) { /* the second time there is none left */
        mqx_journal_lend_fd(&fixture.store);
        CHECK_INT(memory_io_open_count(fixture.files), open - 2);
    }
    mqx_journal_keep_fd(&fixture.store);
    CHECK_INT(memory_io_open_count(fixture.files), open);
}

TEST_MAIN()
