/*
 * test_create_files.c - proves create_files.h: the files of a new queue manager are those of one
 * that has ended in order.
 */
#include "fixtures/harness.h"

#include "base/error.h"
#include "fixtures/journal_fixture.h"
#include "recovery/create_files.h"

#define FIXTURE FIXTURE_OF

TEST(a_new_queue_manager_opens_clean_and_empty_and_nothing_is_written)
{
    __attribute__((cleanup(fixture_free))) struct journal_fixture fixture;
    const struct mqx_region_plan plan = fixture_plan(32768);
    fixture_create(&fixture, &plan);
    memory_io_record(fixture.files, FIXTURE_HOME);
    CHECK_INT(fixture_open(&fixture), 0);
    CHECK(fixture.report.clean);
    CHECK_INT(mqx_checkpoint(&fixture.store, MQX_CHECKPOINT_CLEAN), 0);
    FIXTURE_REOPEN(fixture);
    CHECK(fixture.report.clean);
    TAKE_TRACE(trace, fixture);
    CHECK_INT(trace->event_count, 0);
}

TEST(sizes_that_no_segment_can_have_are_refused_before_anything_is_written)
{
    static const uint64_t sizes[][2] = {{16384, 65536}, {65536, 16384}, {65536 + 512, 65536}};
    for (size_t i = 0; i < MQX_ARRAY_COUNT(sizes); i++) {
        struct memory_io *files = memory_io_new();
        struct mqx_io *io = memory_io_table(files);
        struct mqx_region_plan plan = fixture_plan(65536);
        const uint8_t id[16] = {1};
        memory_io_make_dirs(files, "/j");
        memory_io_make_dirs(files, "/c");
        memory_io_record(files, "/");
        plan.first_segment_size = sizes[i][0];
        plan.segment_size = sizes[i][1];
        CHECK_INT(mqx_journal_create(io, io->ops->open_dir(io, "/"), io->ops->open_dir(io, "/j"),
                                     io->ops->open_dir(io, "/c"), id, &plan),
                  MQRC_UNEXPECTED_ERROR);
        CHECK_INT(memory_io_calls(files, MEMORY_WRITE), 0);
        memory_io_free(files);
    }
}

TEST_MAIN()
